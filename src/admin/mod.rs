//! What operators look at: readiness, metrics and debug pages.

mod debug;
mod findings;
mod metrics;

pub use findings::{AboutProxies, Count, Findings, Refused, Source};
pub use metrics::Metrics;

use crate::push::SnapshotCache;
use crate::server::Xds;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::Arc;

/// What the pages show, read only.
pub trait Overview: Send + Sync + 'static {
    /// The snapshot in force; `None` before the first.
    fn snapshot(&self) -> Option<Arc<SnapshotCache>>;
    /// Everything that is to be said just now.
    fn findings(&self) -> Findings;
    /// How much that is.
    fn counts(&self) -> Vec<Count>;
    /// The xDS server.
    fn xds(&self) -> &Xds;
    /// The counters.
    fn metrics(&self) -> &Metrics;
}

/// Readiness and debug pages (istiod's port 8080).
pub fn http<O: Overview>(overview: Arc<O>) -> Router {
    Router::new()
        .route("/ready", get(ready::<O>))
        .route("/healthz", get(|| async { "ok\n" }))
        .nest("/debug", debug::pages())
        .with_state(overview)
}

/// Metrics (istiod's port 15014).
pub fn monitoring<O: Overview>(overview: Arc<O>) -> Router {
    Router::new()
        .route("/metrics", get(metrics_page::<O>))
        .route("/version", get(|| async { concat!(env!("CARGO_PKG_VERSION"), "\n") }))
        .with_state(overview)
}

/// Ready means that the first snapshot is served: before that a proxy would get an error.
async fn ready<O: Overview>(State(overview): State<Arc<O>>) -> impl IntoResponse {
    match overview.snapshot() {
        Some(_) => (StatusCode::OK, "ready\n"),
        None => (StatusCode::SERVICE_UNAVAILABLE, "no configuration has been read yet\n"),
    }
}

async fn metrics_page<O: Overview>(State(overview): State<Arc<O>>) -> impl IntoResponse {
    let content = "text/plain; version=0.0.4; charset=utf-8";
    overview.metrics().connected(overview.xds().connections().len());
    overview.metrics().findings(&overview.counts());
    ([(header::CONTENT_TYPE, content)], overview.metrics().encode())
}
