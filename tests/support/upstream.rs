//! Upstreams that say who they are, whatever they are spoken to with: HTTP/1.1, HTTP/2, TLS, or a
//! line of text. As with `pilotfish echo`, the header `x-echo-delay-ms` makes them slow.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// Upstreams on these addresses, until the set is dropped.
pub async fn start(addresses: impl IntoIterator<Item = SocketAddr>) -> Result<JoinSet<()>, String> {
    let tls = acceptor()?;
    let mut tasks = JoinSet::new();
    for address in addresses {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| format!("no upstream on {address}: {error}"))?;
        let tls = tls.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(Box::pin(stream), address, tls.clone()));
            }
        });
    }
    Ok(tasks)
}

trait Stream: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}

/// Boxed, because TLS in TLS would make an endless type.
fn serve(
    stream: Pin<Box<dyn Stream>>,
    address: SocketAddr,
    tls: TlsAcceptor,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut stream = BufReader::new(stream);
        let Ok(first) = stream.fill_buf().await.map(|bytes| bytes.first().copied()) else {
            return;
        };
        match first {
            None => {}
            Some(0x16) => {
                if let Ok(inner) = tls.clone().accept(stream).await {
                    serve(Box::pin(inner), address, tls).await;
                }
            }
            Some(letter) if letter.is_ascii_uppercase() => speak_http(stream, address).await,
            Some(_) => speak_lines(stream, address).await,
        }
    })
}

async fn speak_lines(mut stream: BufReader<Pin<Box<dyn Stream>>>, address: SocketAddr) {
    let mut line = String::new();
    if stream.read_line(&mut line).await.is_ok() {
        // A client that is gone does not want the answer.
        let _ = stream.write_all(format!("echo {address}\n").as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

async fn speak_http(mut stream: BufReader<Pin<Box<dyn Stream>>>, address: SocketAddr) {
    let second = stream.fill_buf().await.is_ok_and(|bytes| bytes.starts_with(b"PRI "));
    let service =
        service_fn(
            move |request| async move { Ok::<_, Infallible>(answer(&request, address).await) },
        );
    let io = TokioIo::new(stream);
    // A connection that breaks is the client's business.
    let _ = match second {
        true => {
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            server.serve_connection(io, service).await
        }
        false => hyper::server::conn::http1::Builder::new().serve_connection(io, service).await,
    };
}

async fn answer(request: &Request<Incoming>, address: SocketAddr) -> Response<Full<Bytes>> {
    let delay =
        request.headers().get("x-echo-delay-ms").and_then(|v| v.to_str().ok()?.parse().ok());
    if let Some(millis) = delay {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
    let header = request.headers().get("host").and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(|a| a.as_str()).or(header).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let response = Response::builder()
        .header("x-echo-address", address.to_string())
        .header("x-echo-path", path)
        .header("x-echo-host", host);
    response.body(Full::default()).unwrap_or_default()
}

fn acceptor() -> Result<TlsAcceptor, String> {
    let made = rcgen::generate_simple_self_signed(["upstream.example".to_owned()])
        .map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)
        })
        .map_err(|error| error.to_string())?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
