//! Where resources come from: all that the server knows about the rest of the program.

use crate::generate::Generated;
use crate::proxy::{NodeDescription, NodeError};
use std::fmt;
use std::sync::Arc;

/// Says what a node should have.
pub trait Resources: Send + Sync + 'static {
    /// What this node should have, and what is to be said about it. May take a while, so it is
    /// called where blocking is allowed, and never more often at once than the settings say. Nodes
    /// that should have the same should be given the same `Arc`.
    ///
    /// # Errors
    ///
    /// A node whose id or metadata make no sense.
    fn resources(&self, node: &NodeDescription) -> Result<Arc<Generated>, NodeError>;
}

/// One state of the configuration. Everything that a push sends comes from one generation, so a
/// proxy never sees half of a change.
pub struct Generation {
    number: u64,
    resources: Box<dyn Resources>,
}

/// Where the newest generation is.
pub trait ResourceSource: Send + Sync + 'static {
    /// The newest generation; `None` until the configuration was read once.
    fn current(&self) -> Option<Arc<Generation>>;
}

impl Generation {
    /// A state of the configuration. `number` counts up from one state to the next within this
    /// process, so that a late push of an older state can be told from a newer one; it never
    /// reaches the wire.
    pub fn new(number: u64, resources: impl Resources) -> Generation {
        Generation { number, resources: Box::new(resources) }
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What this node should have, and what is to be said about it.
    ///
    /// # Errors
    ///
    /// A node whose id or metadata make no sense.
    pub fn resources(&self, node: &NodeDescription) -> Result<Arc<Generated>, NodeError> {
        self.resources.resources(node)
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Generation").field(&self.number).finish()
    }
}
