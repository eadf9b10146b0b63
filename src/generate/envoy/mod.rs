//! Planned values in Envoy's terms. Spelling only: what is wanted was decided in `plan`, and nothing
//! is looked up here.

mod access_log;
pub mod hcm;
mod listener;
pub mod matching;
pub mod route;
mod server_tls;
pub mod tcp_proxy;

pub use listener::listener;
