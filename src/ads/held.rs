//! What a client has under one name, as far as the server knows.

use crate::xds::Version;

/// What a client has under one name, as far as we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// This version: it was sent, or the client said on reconnecting that it has it.
    Version(Version),
    /// Some version that we cannot compare, or perhaps none any more.
    Something,
    /// An empty stand-in for a resource that does not exist.
    StandIn,
    /// A stand-in was sent together with something that it refused, so it may have nothing.
    StandInRefused,
    /// Nothing: it was told that the resource does not exist.
    Nothing,
    /// It refused a response that held this version. What it has instead is its own affair.
    Refused {
        /// The version that was in the refused response.
        version: Version,
        /// What else was in it.
        company: Company,
        /// What it may have instead.
        before: Before,
    },
}

/// What a client had under a name before it was sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing, or an empty stand-in.
    Nothing,
    /// A real resource.
    Something,
}

/// Who else was in a refused response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// Nobody, so this resource is the bad one.
    Alone,
    /// Others, so this resource may be a good one that was refused with a bad one.
    Others,
}

impl Held {
    /// Whether this version was refused.
    pub(super) fn refused(&self, of: Version) -> bool {
        matches!(self, Held::Refused { version, .. } if *version == of)
    }

    pub(super) fn before(&self) -> Before {
        match self {
            Held::Version(_) | Held::Something => Before::Something,
            Held::Refused { before, .. } => *before,
            Held::StandIn | Held::StandInRefused | Held::Nothing => Before::Nothing,
        }
    }

    /// Whether it may be a real resource, not a stand-in or nothing.
    pub(super) fn is_real(&self) -> bool {
        match self {
            Held::Version(_) | Held::Something | Held::Refused { .. } => true,
            Held::StandIn | Held::StandInRefused | Held::Nothing => false,
        }
    }
}
