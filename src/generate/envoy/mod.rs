//! Planned values in Envoy's terms. Spelling only: what is wanted was decided in `plan`, and nothing
//! is looked up here.

mod access_log;
mod balancing;
mod cluster;
mod endpoint;
pub mod hcm;
mod listener;
pub mod matching;
pub mod route;
mod outlier;
pub mod secret;
mod server_tls;
pub mod tcp_proxy;
pub mod tls;
mod upstream_http;

pub use cluster::cluster;
pub use endpoint::assignment;
pub use listener::listener;
