//! `pilotfish echo` (hidden): an HTTP server that says who it is and what it was asked. The demo
//! and the tests use it as an upstream.
//!
//! A request may ask for a certain answer with the headers `x-echo-status` (status code) and
//! `x-echo-delay-ms` (how long the answer takes).

use super::{Exit, output};
use crate::settings::EchoArgs;
use anyhow::Context;
use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Serves until the process ends.
pub fn run(args: &EchoArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen)
            .await
            .with_context(|| format!("cannot listen on {}", args.listen))?;
        output::print(&format!("echo {} listens on {}\n", args.name, listener.local_addr()?))?;
        serve(listener, &args.name).await?;
        Ok(Exit::Fine)
    })
}

/// Serves on this listener; tests bind a port of their own.
///
/// # Errors
///
/// The listener fails.
pub async fn serve(listener: TcpListener, name: &str) -> std::io::Result<()> {
    let name: Arc<str> = Arc::from(name);
    let app = Router::new().fallback(answer).with_state(name);
    axum::serve(listener, app).await
}

async fn answer(
    State(name): State<Arc<str>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    if let Some(millis) = header("x-echo-delay-ms").and_then(|v| v.parse().ok()) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
    let status = header("x-echo-status")
        .and_then(|v| v.parse().ok())
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap_or(StatusCode::OK);
    let received: BTreeMap<&str, &str> = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    let body = json!({
        "name": &*name,
        "method": method.as_str(),
        "path": uri.to_string(),
        "headers": received,
    });
    (status, [("x-echo-name", name.to_string())], Json(body)).into_response()
}
