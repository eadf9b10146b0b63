//! Listeners in Envoy's terms. What listeners there are, and who shares them, is decided by
//! `gateway` and `outbound`; here each is written.

pub mod matches;
pub mod tcp;

use super::Scope;
use crate::xds::pb::accesslog;

/// What the listeners of one proxy have in common, made once.
pub struct Writer<'s> {
    scope: &'s Scope<'s>,
    /// The loggers of connections and requests.
    access_log: Vec<accesslog::AccessLog>,
}
