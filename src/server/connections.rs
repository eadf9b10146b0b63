//! Who is connected, and what each was told: a read-only view for debug pages.

use crate::ads::{Protocol, TypeStatus};
use crate::proxy::NodeDescription;
use crate::push::ConnectionId;
use crate::xds::TypeUrl;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The connected proxies.
#[derive(Debug, Default)]
pub struct Connections {
    connections: Mutex<BTreeMap<ConnectionId, Arc<Connection>>>,
}

/// One connected proxy.
#[derive(Debug)]
pub struct Connection {
    /// Its number in this process.
    pub id: ConnectionId,
    /// Who it says that it is.
    pub node: Arc<NodeDescription>,
    /// Where it connects from.
    pub peer: Option<SocketAddr>,
    /// State of the world or delta.
    pub protocol: Protocol,
    /// The only type of the stream, if it is not an aggregated one.
    pub only: Option<TypeUrl>,
    /// Since when.
    pub connected_at: SystemTime,
    progress: Mutex<Progress>,
}

/// How far a connection has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of the generation that it was last sent from.
    pub generation: u64,
    /// What it asked for, was sent and acknowledged, by type.
    pub types: Vec<TypeStatus>,
    /// When it was last sent something, by type.
    pub sent_at: BTreeMap<TypeUrl, SystemTime>,
}

/// While it lives, its connection is listed.
#[derive(Debug)]
pub(super) struct Listed {
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Connections {
    /// Everybody who is connected, in order of connecting.
    pub fn list(&self) -> Vec<Arc<Connection>> {
        self.lock().values().cloned().collect()
    }

    /// How many are connected.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(super) fn add(self: &Arc<Self>, connection: Connection) -> Listed {
        let connection = Arc::new(connection);
        self.lock().insert(connection.id, connection.clone());
        Listed { connection, connections: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Arc<Connection>>> {
        // Nothing can panic between two halves of a change.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    pub(super) fn new(
        id: ConnectionId,
        node: Arc<NodeDescription>,
        peer: Option<SocketAddr>,
        protocol: Protocol,
        only: Option<TypeUrl>,
    ) -> Connection {
        Connection {
            id,
            node,
            peer,
            protocol,
            only,
            connected_at: SystemTime::now(),
            progress: Mutex::default(),
        }
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        self.lock().clone()
    }

    pub(super) fn sent(&self, type_url: TypeUrl) {
        self.lock().sent_at.insert(type_url, SystemTime::now());
    }

    pub(super) fn update(&self, generation: u64, types: Vec<TypeStatus>) {
        let mut progress = self.lock();
        progress.generation = generation;
        progress.types = types;
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        // Nothing can panic between two halves of a change.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.connection.id);
    }
}
