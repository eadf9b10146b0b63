//! HTTP rules as Envoy routes: one file for each part of a route.

mod action;
mod destination;
mod domains;
mod hash;
mod headers;
mod matcher;
mod retry;
mod rule;
mod virtual_host;

use destination::Gap;
pub use destination::{Place, Registry, Scheme};
pub use domains::{Domain, PortForm, of_host, of_service};
pub use rule::{is_catch_all, routes, service_route};
pub use virtual_host::{HostPort, catch_all, configuration, empty, virtual_host};

#[cfg(test)]
mod tests;
