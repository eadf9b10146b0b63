//! Requests through generated configuration, as Envoy would take them: listener, filter chain,
//! route, answer.
//!
//! It reads the JSON form of the resources and shares nothing with the generators. What it does not
//! understand is an error, never a guess: each object that decides about requests is compared with
//! the fields that are known here.

mod chain;
mod http;
mod matchers;

use super::requests::{Answer, Request};
use pilotfish::xds::{ResourceSet, json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// A proxy's configuration.
pub struct Simulator {
    document: Value,
}

/// Something that the simulator has not learnt.
pub type Unknown = String;

impl Simulator {
    /// A proxy that has these resources.
    pub fn new(set: &ResourceSet) -> Simulator {
        Simulator { document: json::set_json(set) }
    }

    /// Where a request ends.
    pub fn answer(&self, request: &Request) -> Result<Answer, Unknown> {
        let Some(listener) = self.listener(request)? else {
            return Ok(Answer::Refused("nothing listens there".to_owned()));
        };
        let name = text(listener, "name");
        let Some(chain) = chain::select(listener, request)? else {
            return Ok(Answer::Refused(format!("no filter chain of {name} fits")));
        };
        self.serve(chain, request).map_err(|unknown| format!("listener {name}: {unknown}"))
    }

    /// The addresses and ports of a cluster's endpoints, also of those that are resolved by name.
    pub fn endpoints(&self, cluster: &str) -> BTreeSet<(String, u16)> {
        let resource = find(&self.document, "clusters", "name", cluster).unwrap_or(&Value::Null);
        let assignment = match resource.get("load_assignment") {
            Some(inline) => inline,
            None => {
                let service = resource["eds_cluster_config"]["service_name"].as_str();
                let name = service.unwrap_or(cluster);
                find(&self.document, "endpoints", "cluster_name", name).unwrap_or(&Value::Null)
            }
        };
        array(assignment, "endpoints")
            .flat_map(|locality| array(locality, "lb_endpoints"))
            .filter_map(|endpoint| address(&endpoint["endpoint"]["address"]))
            .collect()
    }

    /// The names of all clusters.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        array(&self.document, "clusters").map(|cluster| text(cluster, "name"))
    }

    /// Whether the proxy itself listens there.
    pub fn listens_at(&self, address: SocketAddr) -> bool {
        at(array(&self.document, "listeners"), address.ip(), address.port()).is_some()
    }

    /// Whether clients reach this proxy by interception only.
    pub fn is_intercepting(&self) -> bool {
        array(&self.document, "listeners").any(|listener| listener["use_original_dst"] == true)
    }

    fn listener(&self, request: &Request) -> Result<Option<&Value>, Unknown> {
        let all = || array(&self.document, "listeners");
        let bound = |listener: &&Value| {
            listener["bind_to_port"] != false && listener["deprecated_v1"]["bind_to_port"] != false
        };
        if !self.is_intercepting() {
            return Ok(at(all().filter(bound), request.address, request.port));
        }
        if request.inbound {
            let capture = all().find(|listener| text(listener, "name") == "virtualInbound");
            return Ok(capture);
        }
        let handed_over = at(all().filter(|l| !bound(l)), request.address, request.port);
        let capture = all().find(|listener| listener["use_original_dst"] == true);
        Ok(handed_over.or(capture))
    }

    /// What the network filters of a chain do.
    fn serve(&self, chain: &Value, request: &Request) -> Result<Answer, Unknown> {
        let terminates = match chain.get("transport_socket").map(type_of) {
            None | Some("RawBuffer") => false,
            Some("DownstreamTlsContext") => true,
            Some(other) => return Err(format!("transport socket {other} is not simulated")),
        };
        if terminates {
            if request.tls.is_none() {
                return Ok(Answer::Refused("the chain wants TLS".to_owned()));
            }
            if chain["transport_socket"]["typed_config"]["require_client_certificate"] == true {
                return Ok(Answer::Refused("the chain wants a client certificate".to_owned()));
            }
        }
        for filter in array(chain, "filters") {
            match type_of(filter) {
                "HttpConnectionManager" if request.tcp => {
                    return Ok(Answer::Local { status: 400, location: None });
                }
                "HttpConnectionManager" if request.tls.is_some() && !terminates => {
                    return Ok(Answer::Refused("the chain speaks no TLS".to_owned()));
                }
                "HttpConnectionManager" => {
                    return http::answer(&self.document, &filter["typed_config"], request);
                }
                "TcpProxy" => return self.proxied(&filter["typed_config"]),
                // They look at a connection and pass it on.
                "Config" | "MongoProxy" | "SetFilterState" => {}
                other => return Err(format!("network filter {other} is not simulated")),
            }
        }
        Err("a chain without a filter that ends it".to_owned())
    }

    fn proxied(&self, proxy: &Value) -> Result<Answer, Unknown> {
        let clusters = match proxy.get("weighted_clusters") {
            Some(weighted) => {
                array(weighted, "clusters").map(|c| text(c, "name").to_owned()).collect()
            }
            None => BTreeSet::from([text(proxy, "cluster").to_owned()]),
        };
        let missing =
            clusters.iter().find(|c| find(&self.document, "clusters", "name", c).is_none());
        match missing {
            Some(cluster) if clusters.len() == 1 => {
                Ok(Answer::Refused(format!("there is no cluster {cluster}")))
            }
            _ => Ok(Answer::Upstream { clusters, seen: None }),
        }
    }
}

/// The listener on an address: its own before the wildcard.
fn at<'d>(
    listeners: impl Iterator<Item = &'d Value>,
    wanted: IpAddr,
    port: u16,
) -> Option<&'d Value> {
    let mut wildcard = None;
    for listener in listeners {
        let more = array(listener, "additional_addresses").map(|more| &more["address"]);
        for place in std::iter::once(&listener["address"]).chain(more) {
            let Some((address, bound)) = address(place) else { continue };
            let Ok(address) = address.parse::<IpAddr>() else { continue };
            if bound != port {
                continue;
            }
            if address == wanted {
                return Some(listener);
            }
            if address.is_unspecified() && address.is_ipv4() == wanted.is_ipv4() {
                wildcard = wildcard.or(Some(listener));
            }
        }
    }
    wildcard
}

/// Address and port of a socket address.
fn address(value: &Value) -> Option<(String, u16)> {
    let socket = value.get("socket_address")?;
    let port = socket["port_value"].as_u64().unwrap_or_default();
    Some((text(socket, "address").to_owned(), u16::try_from(port).ok()?))
}

/// The resource of a type whose field has this value.
fn find<'d>(document: &'d Value, key: &str, field: &str, name: &str) -> Option<&'d Value> {
    array(document, key).find(|resource| resource[field] == name)
}

/// The items of a list that may be absent.
fn array<'d>(value: &'d Value, key: &str) -> impl Iterator<Item = &'d Value> + use<'d> {
    value[key].as_array().into_iter().flatten()
}

/// A text that may be absent.
fn text<'d>(value: &'d Value, key: &str) -> &'d str {
    value[key].as_str().unwrap_or_default()
}

/// The last part of the type of `typed_config`.
fn type_of(extension: &Value) -> &str {
    let name = extension["typed_config"]["@type"].as_str().unwrap_or_default();
    name.rsplit('.').next().unwrap_or(name)
}

/// Refuses fields that nobody has thought of.
fn only(what: &str, value: &Value, known: &[&str]) -> Result<(), Unknown> {
    let fields = value.as_object().into_iter().flat_map(|fields| fields.keys());
    match fields.map(String::as_str).find(|field| !known.contains(field)) {
        None => Ok(()),
        Some(field) => Err(format!("{what}.{field} is not simulated")),
    }
}
