//! What a filter chain asks of a connection, and the table that keeps the chains of one listener
//! apart: Envoy refuses a whole listener when two of its chains can match the same connection with
//! equal rules, even when only one of several server names coincides.

use ipnet::IpNet;
use std::collections::{HashMap, HashSet};

/// What HTTP in clear text looks like to the HTTP inspector.
const PLAIN_HTTP: &[&str] = &["http/1.1", "h2c"];
/// The same, where HTTP/1.0 is served too.
const PLAIN_HTTP_WITH_1_0: &[&str] = &["http/1.0", "http/1.1", "h2c"];

/// What HTTP in clear text looks like to the HTTP inspector, with HTTP/1.0 where that is served.
pub(super) fn plain_http(http10: bool) -> &'static [&'static str] {
    if http10 { PLAIN_HTTP_WITH_1_0 } else { PLAIN_HTTP }
}

/// What a listener filter found out about the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Clear text.
    Plain,
    /// TLS.
    Tls,
}

/// The conditions of a filter chain; the default matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ChainMatch {
    /// The port that the client meant to reach.
    pub destination_port: Option<u16>,
    /// The networks that the client meant to reach; empty is all.
    pub destinations: Vec<IpNet>,
    /// SNI names; empty is all.
    pub server_names: Vec<String>,
    /// The transport.
    pub transport: Option<Transport>,
    /// Protocols that the inspectors found.
    pub application_protocols: &'static [&'static str],
}

impl ChainMatch {
    /// Clear-text HTTP only.
    pub fn plain_http(protocols: &'static [&'static str]) -> ChainMatch {
        ChainMatch {
            transport: Some(Transport::Plain),
            application_protocols: protocols,
            ..ChainMatch::default()
        }
    }

    /// Sets the SNI names: in lower case, each once, in order. Envoy knows exact names and `*.x`;
    /// when one of them is `*`, or a wildcard that Envoy does not know, all names match.
    #[must_use]
    pub fn with_server_names<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> ChainMatch {
        self.server_names.clear();
        let mut seen = HashSet::new();
        for name in names {
            let name = name.to_ascii_lowercase();
            if name.starts_with('*') && !name.starts_with("*.") {
                self.server_names.clear();
                break;
            }
            if seen.insert(name.clone()) {
                self.server_names.push(name);
            }
        }
        self
    }

    /// Sets the networks, masked, each once. A network of everything is no condition.
    #[must_use]
    pub fn with_destinations(mut self, networks: &[IpNet]) -> ChainMatch {
        if networks.iter().any(|network| network.prefix_len() == 0) {
            return self;
        }
        self.destinations = networks.iter().map(IpNet::trunc).collect();
        self.destinations.sort_unstable();
        self.destinations.dedup();
        self
    }

    /// Whether every connection matches.
    pub fn is_match_all(&self) -> bool {
        *self == ChainMatch::default()
    }

    /// Whether it can only hold after the TLS inspector has looked.
    pub fn needs_tls_inspector(&self) -> bool {
        !self.server_names.is_empty() || self.transport == Some(Transport::Tls)
    }

    /// Whether it can only hold after the HTTP inspector has looked.
    pub fn needs_http_inspector(&self) -> bool {
        !self.application_protocols.is_empty()
    }
}

/// The rules that chains of one listener have claimed, and by whom.
#[derive(Debug)]
pub struct MatchTable<T> {
    claims: HashMap<Key, T>,
}

/// One combination that Envoy's matcher tells apart.
type Key = (Option<u16>, Option<IpNet>, Option<String>, Option<Transport>, Option<&'static str>);

/// What came of a claim.
#[derive(Debug, PartialEq, Eq)]
pub enum Claim<T> {
    /// Nobody was in the way.
    Whole,
    /// Some server names belong to another chain and were taken out of the match.
    Without {
        /// The names.
        names: Vec<String>,
        /// Whose they are.
        owner: T,
    },
    /// Nothing is left: the chain must not be added.
    Nothing {
        /// Who was first.
        owner: T,
    },
}

impl<T> Default for MatchTable<T> {
    fn default() -> MatchTable<T> {
        MatchTable { claims: HashMap::new() }
    }
}

impl<T: Copy> MatchTable<T> {
    /// Claims a match for a chain; the first to claim a combination keeps it.
    pub fn claim(&mut self, wanted: &mut ChainMatch, owner: T) -> Claim<T> {
        let names: Vec<Option<String>> = match wanted.server_names.is_empty() {
            true => vec![None],
            false => wanted.server_names.iter().cloned().map(Some).collect(),
        };
        let mut taken = Vec::new();
        let mut first_owner = None;
        for name in names {
            let keys = keys(wanted, name.as_ref());
            match keys.iter().find_map(|key| self.claims.get(key)) {
                Some(other) => {
                    first_owner.get_or_insert(*other);
                    taken.push(name);
                }
                None => self.claims.extend(keys.into_iter().map(|key| (key, owner))),
            }
        }
        let Some(other) = first_owner else { return Claim::Whole };
        let taken: Vec<String> = taken.into_iter().flatten().collect();
        if taken.len() == wanted.server_names.len() {
            return Claim::Nothing { owner: other };
        }
        wanted.server_names.retain(|name| !taken.contains(name));
        Claim::Without { names: taken, owner: other }
    }
}

/// Every combination of a match for one of its server names.
fn keys(wanted: &ChainMatch, name: Option<&String>) -> Vec<Key> {
    let networks: Vec<Option<IpNet>> = match wanted.destinations.is_empty() {
        true => vec![None],
        false => wanted.destinations.iter().copied().map(Some).collect(),
    };
    let protocols: Vec<Option<&'static str>> = match wanted.application_protocols.is_empty() {
        true => vec![None],
        false => wanted.application_protocols.iter().copied().map(Some).collect(),
    };
    let mut keys = Vec::with_capacity(networks.len() * protocols.len());
    for network in networks {
        for protocol in &protocols {
            keys.push((
                wanted.destination_port,
                network,
                name.cloned(),
                wanted.transport,
                *protocol,
            ));
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sni(names: &[&str]) -> ChainMatch {
        ChainMatch::default().with_server_names(names.iter().copied())
    }

    #[test]
    fn a_shared_server_name_is_taken_out_of_the_later_chain() {
        let mut table = MatchTable::default();
        assert_eq!(table.claim(&mut sni(&["a.com", "B.com"]), 1), Claim::Whole);
        let mut later = sni(&["b.com", "c.com"]);
        let claim = table.claim(&mut later, 2);
        assert_eq!(claim, Claim::Without { names: vec!["b.com".into()], owner: 1 });
        assert_eq!(later.server_names, ["c.com"]);
        assert_eq!(table.claim(&mut sni(&["c.com"]), 3), Claim::Nothing { owner: 2 });
    }

    #[test]
    fn a_second_match_all_chain_gets_nothing() {
        let mut table = MatchTable::default();
        assert_eq!(table.claim(&mut ChainMatch::default(), 1), Claim::Whole);
        assert_eq!(table.claim(&mut ChainMatch::default(), 2), Claim::Nothing { owner: 1 });
        let mut http = ChainMatch::plain_http(plain_http(false));
        assert_eq!(table.claim(&mut http, 3), Claim::Whole);
    }

    #[test]
    fn networks_are_compared_masked() {
        let networks = |text: &str| {
            ChainMatch::default().with_destinations(&[text.parse().expect("a network")])
        };
        let mut table = MatchTable::default();
        assert_eq!(table.claim(&mut networks("10.1.2.3/16"), 1), Claim::Whole);
        assert_eq!(table.claim(&mut networks("10.1.0.0/16"), 2), Claim::Nothing { owner: 1 });
        assert_eq!(table.claim(&mut networks("10.1.0.0/24"), 3), Claim::Whole);
    }

    #[test]
    fn a_star_among_server_names_matches_every_name() {
        assert!(sni(&["a.com", "*"]).is_match_all());
        assert!(sni(&["*x.com"]).is_match_all());
        assert_eq!(sni(&["*.X.com", "*.x.com"]).server_names, ["*.x.com"]);
    }
}
