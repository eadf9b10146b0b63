//! `trafficPolicy`: what DestinationRule says about the way to a service, of which Sidecar and
//! the mesh configuration use parts.

mod connection_pool;
mod load_balancer;
mod locality;
mod outlier_detection;
mod tls;

pub use connection_pool::{ConnectionPool, TcpKeepalive};
pub use load_balancer::LoadBalancer;
pub use locality::{LocalitySetting, ZoneAwareSetting};
pub use outlier_detection::OutlierDetection;
pub use tls::{CONFIG_MAP, ClientTls, TlsMode};

use super::rules;
use super::values::{self, PortSelector};
use crate::config::{Field, Findings};
use crate::diag::Code;
use crate::model;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;

/// The way to a service: balancing, limits, health, security.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficPolicy {
    /// Which endpoint a request goes to.
    pub load_balancer: Option<LoadBalancer>,
    /// Limits and timeouts of connections and requests.
    pub connection_pool: Option<ConnectionPool>,
    /// Takes endpoints that fail out of load balancing for a while.
    pub outlier_detection: Option<OutlierDetection>,
    /// How connections are secured.
    pub tls: Option<ClientTls>,
    /// Settings of single ports; they replace all others of that port.
    #[serde(default)]
    pub port_level_settings: Vec<PortPolicy>,
    /// Sends TCP through an HTTP tunnel.
    pub tunnel: Option<Tunnel>,
    /// Tells the upstream the client's address with the PROXY protocol.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Limits retries to a share of the requests.
    pub retry_budget: Option<RetryBudget>,
}

/// Settings of one port.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortPolicy {
    /// The service's port.
    pub port: PortSelector,
    /// Which endpoint a request goes to.
    pub load_balancer: Option<LoadBalancer>,
    /// Limits and timeouts of connections and requests.
    pub connection_pool: Option<ConnectionPool>,
    /// Takes endpoints that fail out of load balancing for a while.
    pub outlier_detection: Option<OutlierDetection>,
    /// How connections are secured.
    pub tls: Option<ClientTls>,
}

/// Sends TCP through an HTTP tunnel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tunnel {
    /// `CONNECT` (the default) or `POST`.
    #[serde(default)]
    #[schemars(extend("enum" = ["", "CONNECT", "POST"]))]
    pub protocol: String,
    /// Host that the tunnel leads to.
    pub target_host: String,
    /// Port that the tunnel leads to.
    #[schemars(range(min = 1))]
    pub target_port: u16,
}

/// Tells the upstream the client's address with the PROXY protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyProtocol {
    /// Version of the protocol.
    #[serde(default)]
    pub version: ProxyProtocolVersion,
}

/// Versions of the PROXY protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ProxyProtocolVersion {
    /// A line of text.
    #[default]
    V1,
    /// A binary header.
    V2,
}

/// Limits retries to a share of the requests.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryBudget {
    /// Most retries, in percent of the requests in flight; unset is 20.
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<f64>,
    /// Retries that are always allowed; unset is 3.
    #[serde(default)]
    pub min_retry_concurrency: u32,
    /// How long a request counts; unset counts only those in flight.
    pub budget_interval: Option<values::Duration>,
}

impl TrafficPolicy {
    /// Istio's rules.
    pub fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if *self == TrafficPolicy::default() {
            let message = "an empty policy says nothing; set one of its fields, or remove it";
            f.error(at, Code::MissingField, message);
        }
        if self.tunnel.is_some() && self.proxy_protocol.is_some() {
            let message = "`tunnel` and `proxyProtocol` exclude each other; keep one";
            f.error(&at.key("proxyProtocol"), Code::ConflictingFields, message);
        }
        Blocks::of(self).check(at, f);
        let ports = at.key("portLevelSettings");
        for (index, policy) in self.port_level_settings.iter().enumerate() {
            policy.check(&ports.index(index), f);
        }
        if let Some(tunnel) = &self.tunnel {
            tunnel.check(&at.key("tunnel"), f);
        }
        if let Some(budget) = &self.retry_budget {
            budget.check(&at.key("retryBudget"), f);
        }
    }

    /// What it means.
    pub fn lower(&self) -> model::TrafficPolicy {
        model::TrafficPolicy {
            load_balancer: self.load_balancer.as_ref().map(LoadBalancer::lower),
            connection_pool: self.connection_pool.as_ref().map(ConnectionPool::lower),
            outlier_detection: self.outlier_detection.as_ref().map(OutlierDetection::lower),
            tls: self.tls.as_ref().map(ClientTls::lower),
            tunnel: self.tunnel.as_ref().map(Tunnel::lower),
            proxy_protocol: self.proxy_protocol.as_ref().map(|p| match p.version {
                ProxyProtocolVersion::V1 => model::ProxyProtocolVersion::V1,
                ProxyProtocolVersion::V2 => model::ProxyProtocolVersion::V2,
            }),
            retry_budget: self.retry_budget.as_ref().map(RetryBudget::lower),
            ports: self.port_level_settings.iter().map(PortPolicy::lower).collect(),
        }
    }
}

/// The four blocks that a port's settings have too.
struct Blocks<'p> {
    load_balancer: Option<&'p LoadBalancer>,
    connection_pool: Option<&'p ConnectionPool>,
    outlier_detection: Option<&'p OutlierDetection>,
    tls: Option<&'p ClientTls>,
}

impl<'p> Blocks<'p> {
    fn of(policy: &'p TrafficPolicy) -> Blocks<'p> {
        Blocks {
            load_balancer: policy.load_balancer.as_ref(),
            connection_pool: policy.connection_pool.as_ref(),
            outlier_detection: policy.outlier_detection.as_ref(),
            tls: policy.tls.as_ref(),
        }
    }

    fn of_port(policy: &'p PortPolicy) -> Blocks<'p> {
        Blocks {
            load_balancer: policy.load_balancer.as_ref(),
            connection_pool: policy.connection_pool.as_ref(),
            outlier_detection: policy.outlier_detection.as_ref(),
            tls: policy.tls.as_ref(),
        }
    }

    fn is_empty(&self) -> bool {
        self.load_balancer.is_none()
            && self.connection_pool.is_none()
            && self.outlier_detection.is_none()
            && self.tls.is_none()
    }

    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if let Some(balancer) = self.load_balancer {
            balancer.check(&at.key("loadBalancer"), self.outlier_detection, f);
        }
        if let Some(pool) = self.connection_pool {
            pool.check(&at.key("connectionPool"), f);
        }
        if let Some(outlier) = self.outlier_detection {
            outlier.check(&at.key("outlierDetection"), f);
        }
        if let Some(tls) = self.tls {
            tls.check(&at.key("tls"), f);
        }
    }
}

impl PortPolicy {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let port = at.key("port");
        rules::port(f, &port.key("number"), self.port.number);
        let blocks = Blocks::of_port(self);
        if blocks.is_empty() {
            let message = "settings of a port need at least one of `loadBalancer`, \
                           `connectionPool`, `outlierDetection`, `tls`";
            f.error(at, Code::MissingField, message);
        }
        blocks.check(at, f);
    }

    fn lower(&self) -> model::PortPolicy {
        model::PortPolicy {
            port: self.port.number,
            load_balancer: self.load_balancer.as_ref().map(LoadBalancer::lower),
            connection_pool: self.connection_pool.as_ref().map(ConnectionPool::lower),
            outlier_detection: self.outlier_detection.as_ref().map(OutlierDetection::lower),
            tls: self.tls.as_ref().map(ClientTls::lower),
        }
    }
}

impl Tunnel {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if !["", "CONNECT", "POST"].contains(&self.protocol.as_str()) {
            let message = format!("expected `CONNECT` or `POST`, not `{}`", self.protocol);
            f.error(&at.key("protocol"), Code::InvalidValue, message);
        }
        let problem = rules::fqdn_problem(&self.target_host);
        if let Some(problem) = problem.filter(|_| self.target_host.parse::<IpAddr>().is_err()) {
            let message = format!(
                "`{}` is neither an IP address nor a host name: {problem}",
                self.target_host
            );
            f.error(&at.key("targetHost"), Code::InvalidValue, message);
        }
        rules::port(f, &at.key("targetPort"), self.target_port);
    }

    fn lower(&self) -> model::Tunnel {
        model::Tunnel {
            use_post: self.protocol == "POST",
            target_host: self.target_host.clone(),
            target_port: self.target_port,
        }
    }
}

impl RetryBudget {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if let Some(percent) = self.percent.filter(|p| !(0.0..=100.0).contains(p)) {
            let message = format!("a percentage is from 0 to 100, not {percent}");
            f.error(&at.key("percent"), Code::InvalidValue, message);
        }
    }

    fn lower(&self) -> model::RetryBudget {
        model::RetryBudget {
            percent: self.percent.unwrap_or(20.0),
            min_retry_concurrency: match self.min_retry_concurrency {
                0 => 3,
                number => number,
            },
            interval: self.budget_interval.map(Into::into),
        }
    }
}
