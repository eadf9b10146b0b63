//! From rules to what Envoy is told, through all three steps.

use super::RouteParts;
use crate::generate::envoy;
use crate::xds::pb::route as proto;

mod edge;
mod hash;
mod rules;
mod sharing;
mod sidecar;
