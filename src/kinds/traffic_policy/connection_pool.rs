//! `connectionPool`: how many connections and requests, and how long.

use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::kinds::{rules, values};
use crate::model;
use schemars::JsonSchema;
use serde::Deserialize;

/// Limits and timeouts of connections and requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionPool {
    /// Settings of connections, whatever is spoken on them.
    pub tcp: Option<TcpSettings>,
    /// Settings of HTTP.
    pub http: Option<HttpSettings>,
}

/// Settings of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpSettings {
    /// Most connections; unset is without limit.
    #[serde(default)]
    pub max_connections: u32,
    /// How long connecting may take; unset is the mesh's value.
    pub connect_timeout: Option<values::Duration>,
    /// Keepalive probes of the operating system.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// How long a connection may live.
    pub max_connection_duration: Option<values::Duration>,
    /// How long a connection may be idle; 0s is without limit.
    pub idle_timeout: Option<values::Duration>,
}

/// Keepalive probes; an empty one switches them on with the system's values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpKeepalive {
    /// Unanswered probes until a connection counts as dead.
    #[serde(default)]
    pub probes: u32,
    /// Idle time before the first probe.
    pub time: Option<values::Duration>,
    /// Time between probes.
    pub interval: Option<values::Duration>,
}

/// Settings of HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSettings {
    /// Most requests that wait for a connection; unset is without limit.
    #[serde(default)]
    pub http1_max_pending_requests: u32,
    /// Most requests in flight, of any HTTP version; unset is without limit.
    #[serde(default)]
    pub http2_max_requests: u32,
    /// Most requests on one connection; unset is without limit.
    #[serde(default)]
    pub max_requests_per_connection: u32,
    /// Most retries in flight; unset is without limit.
    #[serde(default)]
    pub max_retries: u32,
    /// How long a connection may have no request.
    pub idle_timeout: Option<values::Duration>,
    /// Whether HTTP/1.1 is sent on as HTTP/2.
    #[serde(default)]
    pub h2_upgrade_policy: H2UpgradePolicy,
    /// Speaks the HTTP version that the client speaks.
    #[serde(default)]
    pub use_client_protocol: bool,
    /// Most streams on one HTTP/2 connection; unset is the protocol's limit.
    #[serde(default)]
    pub max_concurrent_streams: u32,
    /// Pings on HTTP/2 connections.
    pub http2_keep_alive: Option<Http2KeepAlive>,
}

/// Whether HTTP/1.1 is sent on as HTTP/2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum H2UpgradePolicy {
    /// The mesh's policy.
    #[default]
    Default,
    /// Never.
    DoNotUpgrade,
    /// Always.
    Upgrade,
}

/// Pings on HTTP/2 connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Http2KeepAlive {
    /// Time between pings.
    pub interval: Option<values::Duration>,
    /// How long an answer may take.
    pub timeout: Option<values::Duration>,
}

impl ConnectionPool {
    /// Istio's rules.
    pub fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if self.tcp.is_none() && self.http.is_none() {
            let message =
                "an empty connection pool says nothing; set `tcp` or `http`, or remove it";
            f.error(at, Code::MissingField, message);
        }
        if let Some(tcp) = &self.tcp {
            tcp.check(&at.key("tcp"), f);
        }
        if let Some(http) = &self.http {
            http.check(&at.key("http"), f);
        }
    }

    /// What it means.
    pub fn lower(&self) -> model::ConnectionPool {
        model::ConnectionPool {
            tcp: self.tcp.as_ref().map(TcpSettings::lower).unwrap_or_default(),
            http: self.http.as_ref().map(HttpSettings::lower).unwrap_or_default(),
        }
    }
}

impl TcpSettings {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        for (name, duration) in [
            ("connectTimeout", self.connect_timeout),
            ("maxConnectionDuration", self.max_connection_duration),
        ] {
            if let Some(duration) = duration {
                rules::duration(f, &at.key(name), duration);
            }
        }
        if let Some(timeout) = self.idle_timeout.filter(|t| !t.0.is_zero()) {
            rules::duration(f, &at.key("idleTimeout"), timeout);
        }
        if let Some(keepalive) = &self.tcp_keepalive {
            keepalive.check(&at.key("tcpKeepalive"), f);
        }
    }

    fn lower(&self) -> model::TcpPool {
        model::TcpPool {
            max_connections: self.max_connections,
            connect_timeout: self.connect_timeout.map(Into::into),
            keepalive: self.tcp_keepalive.as_ref().map(TcpKeepalive::lower),
            max_connection_duration: self.max_connection_duration.map(Into::into),
            idle_timeout: self.idle_timeout.map(Into::into),
        }
    }
}

impl TcpKeepalive {
    /// Istio's rules.
    pub fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        for (name, duration) in [("time", self.time), ("interval", self.interval)] {
            if let Some(duration) = duration {
                rules::duration(f, &at.key(name), duration);
            }
        }
    }

    /// What it means.
    pub fn lower(&self) -> model::TcpKeepalive {
        model::TcpKeepalive {
            probes: self.probes,
            time: self.time.map(Into::into),
            interval: self.interval.map(Into::into),
        }
    }
}

impl HttpSettings {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if let Some(timeout) = self.idle_timeout {
            rules::duration(f, &at.key("idleTimeout"), timeout);
        }
        if self.use_client_protocol && self.h2_upgrade_policy == H2UpgradePolicy::Upgrade {
            let message = "`useClientProtocol` and `h2UpgradePolicy: UPGRADE` exclude each other";
            let diagnostic =
                Diagnostic::new(Code::ConflictingFields, message).help("remove one of the two");
            f.report(&at.key("useClientProtocol"), diagnostic);
        }
        if let Some(keepalive) = &self.http2_keep_alive {
            let at = at.key("http2KeepAlive");
            for (name, duration) in
                [("interval", keepalive.interval), ("timeout", keepalive.timeout)]
            {
                match duration {
                    Some(duration) => rules::duration(f, &at.key(name), duration),
                    None => {
                        let message = format!("the required field `{name}` is missing");
                        f.error(&at, Code::MissingField, message);
                    }
                }
            }
        }
    }

    fn lower(&self) -> model::HttpPool {
        let keepalive = self.http2_keep_alive.as_ref().and_then(|k| k.interval.zip(k.timeout));
        model::HttpPool {
            http1_max_pending_requests: self.http1_max_pending_requests,
            http2_max_requests: self.http2_max_requests,
            max_requests_per_connection: self.max_requests_per_connection,
            max_retries: self.max_retries,
            idle_timeout: self.idle_timeout.map(Into::into),
            h2_upgrade: match self.h2_upgrade_policy {
                H2UpgradePolicy::Default => model::H2Upgrade::Default,
                H2UpgradePolicy::DoNotUpgrade => model::H2Upgrade::DoNotUpgrade,
                H2UpgradePolicy::Upgrade => model::H2Upgrade::Upgrade,
            },
            use_client_protocol: self.use_client_protocol,
            max_concurrent_streams: self.max_concurrent_streams,
            http2_keepalive: keepalive.map(|(interval, timeout)| model::Http2KeepAlive {
                interval: interval.into(),
                timeout: timeout.into(),
            }),
        }
    }
}
