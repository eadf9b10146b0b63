//! Debug pages, under istiod's names where the answer is the same.

use super::Overview;
use crate::proxy::NodeError;
use crate::server::Connection;
use crate::xds::{TypeUrl, json};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The pages, below `/debug`.
pub fn pages<O: Overview>() -> Router<Arc<O>> {
    Router::new()
        .route("/", get(index))
        .route("/syncz", get(syncz::<O>))
        .route("/config_dump", get(config_dump::<O>))
        .route("/findings", get(findings::<O>))
}

async fn index() -> &'static str {
    "/debug/syncz                      what each proxy was sent and has accepted\n\
     /debug/config_dump?proxyID=NODE   what a connected proxy should have; secrets are redacted\n\
     /debug/findings                   what is to be said about the documents and about each proxy,\n\
     \u{20}                                 and what proxies refused; ?proxyID=NODE, ?format=text\n"
}

async fn syncz<O: Overview>(State(overview): State<Arc<O>>) -> Json<Value> {
    let connections = overview.xds().connections().list();
    Json(connections.iter().map(|connection| sync_state(connection)).collect())
}

fn sync_state(connection: &Connection) -> Value {
    let mut out = Map::new();
    out.insert("proxy".into(), connection.node.id.clone().into());
    out.insert("connection".into(), connection.id.to_string().into());
    if let Some(peer) = connection.peer {
        out.insert("address".into(), peer.to_string().into());
    }
    let mut resources = Map::new();
    for status in connection.progress().types {
        let short = TypeUrl::parse(&status.type_url).map(TypeUrl::short_name);
        let sent = status.sent.as_ref().map(|told| told.nonce.clone());
        let acked = status.acked.as_ref().map(|told| told.nonce.clone());
        let state = match (&sent, &acked, &status.last_error) {
            (None, _, _) => "NOT SENT",
            (Some(_), _, Some(_)) => "ERROR",
            (Some(sent), Some(acked), None) if sent == acked => "SYNCED",
            (Some(_), _, None) => "STALE",
        };
        resources.insert(
            short.unwrap_or(&status.type_url).to_owned(),
            json!({
                "state": state,
                "sent": sent,
                "acked": acked,
                "version": status.sent.map(|told| told.version),
                "lastError": status.last_error.as_deref(),
            }),
        );
    }
    out.insert("resources".into(), Value::Object(resources));
    Value::Object(out)
}

#[derive(Deserialize)]
struct Proxy {
    #[serde(rename = "proxyID")]
    proxy_id: Option<String>,
}

async fn config_dump<O: Overview>(
    State(overview): State<Arc<O>>,
    Query(Proxy { proxy_id }): Query<Proxy>,
) -> Response {
    let Some(id) = proxy_id else {
        let text = "You must provide a proxyID in the query string\n";
        return (StatusCode::BAD_REQUEST, text).into_response();
    };
    let connections = overview.xds().connections().list();
    let found = connections.iter().find(|c| c.node.id == id);
    let found = found.or_else(|| connections.iter().find(|c| c.node.id.contains(&id)));
    let (Some(connection), Some(cache)) = (found, overview.snapshot()) else {
        let text = format!("no proxy is connected whose node id contains '{id}'\n");
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let node = connection.node.clone();
    // It may have to be made first, which takes as long as a push to the proxy.
    let dump = tokio::task::spawn_blocking(move || {
        let proxy = node.resolve(cache.snapshot())?;
        Ok::<Value, NodeError>(json::set_json(&cache.generate(&proxy).set))
    });
    match dump.await {
        Ok(Ok(dump)) => Json(dump).into_response(),
        Ok(Err(error)) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")).into_response(),
        Err(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "the resources could not be made\n").into_response()
        }
    }
}

#[derive(Deserialize)]
struct Wanted {
    #[serde(rename = "proxyID")]
    proxy_id: Option<String>,
    #[serde(default)]
    format: Format,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    Text,
}

async fn findings<O: Overview>(
    State(overview): State<Arc<O>>,
    Query(Wanted { proxy_id, format }): Query<Wanted>,
) -> Response {
    let mut findings = overview.findings();
    if let Some(id) = proxy_id {
        findings.keep_proxies(&id);
    }
    match format {
        Format::Json => Json(findings.json()).into_response(),
        Format::Text => findings.to_string().into_response(),
    }
}
