//! Planned values in Envoy's terms. Spelling only: what is wanted was decided in `plan`, and nothing
//! is looked up here.

mod access_log;
mod balancing;
mod cluster;
mod endpoint;
pub mod hcm;
mod listener;
pub mod matching;
mod outlier;
pub mod route;
pub mod secret;
mod server_tls;
pub mod tcp_proxy;
pub mod tls;
mod upstream_http;

pub use cluster::cluster;
pub use endpoint::assignment;
pub use listener::listener;
