//! A client that sends the requests of golden cases and says where they ended.

use super::requests::{Request, Seen};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// Where a request ended, as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// No connection, or one that ended without an answer.
    Refused(String),
    /// Envoy answered.
    Local { status: u16, location: Option<String> },
    /// An echo answered.
    Echoed { address: SocketAddr, seen: Option<Seen> },
}

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends a request and waits for the end.
pub async fn send(request: &Request) -> Outcome {
    match timeout(PATIENCE, attempt(request)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(reason)) => Outcome::Refused(reason),
        Err(_) => Outcome::Refused("no answer in time".to_owned()),
    }
}

async fn attempt(request: &Request) -> Result<Outcome, String> {
    let to = SocketAddr::new(request.address, request.port);
    let stream = TcpStream::connect(to).await.map_err(|e| e.to_string())?;
    let Some(tls) = &request.tls else { return talk(stream, request).await };
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    config.alpn_protocols = tls.alpn.iter().map(|p| p.clone().into_bytes()).collect();
    config.enable_sni = tls.sni.is_some();
    let name = tls.sni.clone().unwrap_or_else(|| "none.invalid".to_owned());
    let name = ServerName::try_from(name).map_err(|e| e.to_string())?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    talk(stream.map_err(|e| e.to_string())?, request).await
}

async fn talk(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: &Request,
) -> Result<Outcome, String> {
    if !request.tcp {
        let mut builder = http::Request::builder()
            .method(request.method.as_str())
            .uri(request.path.as_str())
            .header("host", request.authority());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let (parts, _) = exchange(stream, builder).await?;
        return outcome(&parts);
    }
    stream.write_all(b"hello\n").await.map_err(|e| e.to_string())?;
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer).await;
    if let Some(address) = answer.strip_prefix("echo ").and_then(|a| a.trim().parse().ok()) {
        return Ok(Outcome::Echoed { address, seen: None });
    }
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    match status {
        Some(status) => Ok(Outcome::Local { status, location: None }),
        None => Err(format!("answered {answer:?} ({read:?})")),
    }
}

fn outcome(parts: &http::response::Parts) -> Result<Outcome, String> {
    let header =
        |name: &str| parts.headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let Some(address) = header("x-echo-address") else {
        let status = parts.status.as_u16();
        return Ok(Outcome::Local { status, location: header("location") });
    };
    let seen =
        Seen { path: header("x-echo-path").unwrap_or_default(), host: header("x-echo-host") };
    let address = address.parse().map_err(|e| format!("{address}: {e}"))?;
    Ok(Outcome::Echoed { address, seen: Some(seen) })
}

/// One HTTP/1.1 request on a connection of its own.
pub async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: http::request::Builder,
) -> Result<(http::response::Parts, Bytes), String> {
    let request = request.body(Empty::<Bytes>::new()).map_err(|e| e.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| e.to_string())?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|e| e.to_string())?.to_bytes();
    connection.abort();
    Ok((parts, body))
}

/// Certificates are not what is tested here.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        algorithms().supported_schemes()
    }
}

fn algorithms() -> tokio_rustls::rustls::crypto::WebPkiSupportedAlgorithms {
    let provider: CryptoProvider = ring::default_provider();
    provider.signature_verification_algorithms
}
