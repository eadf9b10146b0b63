//! What debug pages show of a stream.

use super::Stream;
use super::subscription::Sent;
use std::sync::Arc;

/// The state of one type on one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeStatus {
    /// The type URL.
    pub type_url: Arc<str>,
    /// Whether everything of the type is asked for.
    pub wildcard: bool,
    /// How many names are asked for beside that.
    pub names: usize,
    /// The last response.
    pub sent: Option<Told>,
    /// The last response that was accepted.
    pub acked: Option<Told>,
    /// Why the last response was refused, if it was.
    pub last_error: Option<Arc<str>>,
}

/// A response as the two words by which it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its nonce.
    pub nonce: String,
    /// Its version.
    pub version: String,
}

impl From<Sent> for Told {
    fn from(sent: Sent) -> Told {
        Told { nonce: sent.nonce.to_string(), version: sent.version.to_string() }
    }
}

pub(super) fn of(stream: &Stream) -> Vec<TypeStatus> {
    let served = stream.subscriptions.values().map(|s| TypeStatus {
        type_url: s.type_url.as_str().into(),
        wildcard: s.books.wildcard(),
        names: s.books.n_names(),
        sent: s.sent.map(Told::from),
        acked: s.acked.map(Told::from),
        last_error: s.last_error.clone(),
    });
    let unserved = stream.unserved.iter().map(|type_url| TypeStatus {
        type_url: type_url.as_str().into(),
        wildcard: false,
        names: 0,
        sent: None,
        acked: None,
        last_error: None,
    });
    served.chain(unserved).collect()
}
