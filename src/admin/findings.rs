//! What `/debug/findings` shows: everything that is to be said just now, by where it comes from.

use crate::diag::{self, Diagnostic, Severity};
use crate::xds::TypeUrl;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Proxies that a text names; the rest is counted. JSON names them all.
const NAMED: usize = 5;

/// Where a finding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Files and documents, whoever is connected.
    Documents,
    /// What a connected proxy gets.
    Proxies,
    /// A connected proxy that refused something.
    Refusals,
}

impl Source {
    /// The word used in every output format.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Documents => "documents",
            Source::Proxies => "proxies",
            Source::Refusals => "refusals",
        }
    }
}

/// How many different findings there are of a source and a severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Where they come from.
    pub source: Source,
    /// How bad they are.
    pub severity: Severity,
    /// How many.
    pub findings: usize,
}

/// Everything that is to be said just now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// About files and documents.
    pub documents: Arc<[Diagnostic]>,
    /// About what connected proxies get. Only proxies of which there is something to say.
    pub proxies: Vec<AboutProxies>,
    /// What connected proxies refused and have not accepted since.
    pub refusals: Vec<Refused>,
}

/// Proxies of which the same is to be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboutProxies {
    /// Their node ids.
    pub proxies: BTreeSet<String>,
    /// What is to be said.
    pub findings: Arc<[Diagnostic]>,
    /// How much more there was to say than is kept.
    pub more: usize,
}

/// One refusal, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The node ids.
    pub proxies: BTreeSet<String>,
    /// The type of the response.
    pub type_url: TypeUrl,
    /// What the proxies say about it.
    pub finding: Diagnostic,
}

impl Findings {
    /// Leaves only proxies whose node id contains this; all documents stay.
    pub fn keep_proxies(&mut self, id: &str) {
        for about in &mut self.proxies {
            about.proxies.retain(|proxy| proxy.contains(id));
        }
        self.proxies.retain(|about| !about.proxies.is_empty());
        for refused in &mut self.refusals {
            refused.proxies.retain(|proxy| proxy.contains(id));
        }
        self.refusals.retain(|refused| !refused.proxies.is_empty());
    }

    /// For tools: an object with the keys `documents`, `proxies` and `refusals`. Findings have the
    /// keys of [`diag::json`].
    pub fn json(&self) -> Value {
        let proxies = self.proxies.iter().map(|about| {
            json!({
                "proxies": about.proxies,
                "findings": diag::json(&about.findings),
                "more": about.more,
            })
        });
        let refusals = self.refusals.iter().map(|refused| {
            json!({
                "proxies": refused.proxies,
                "type": refused.type_url.short_name(),
                "findings": diag::json(std::slice::from_ref(&refused.finding)),
            })
        });
        json!({
            "documents": diag::json(&self.documents),
            "proxies": proxies.collect::<Vec<_>>(),
            "refusals": refusals.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Findings {
    /// For people: one line for each finding, below a line that says what it is about.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "documents:")?;
        block(f, &self.documents, 0)?;
        for about in &self.proxies {
            writeln!(f, "\nproxies {}:", named(&about.proxies))?;
            block(f, &about.findings, about.more)?;
        }
        for refused in &self.refusals {
            let type_name = refused.type_url.short_name();
            writeln!(f, "\n{type_name} refused by {}:", named(&refused.proxies))?;
            block(f, std::slice::from_ref(&refused.finding), 0)?;
        }
        Ok(())
    }
}

fn block(f: &mut fmt::Formatter<'_>, findings: &[Diagnostic], more: usize) -> fmt::Result {
    if findings.is_empty() {
        writeln!(f, "  nothing to say")?;
    }
    for finding in findings {
        writeln!(f, "  {finding}")?;
    }
    if more > 0 {
        writeln!(f, "  and {more} more")?;
    }
    Ok(())
}

/// `a, b, c, d, e and 37 more`.
fn named(proxies: &BTreeSet<String>) -> String {
    let first: Vec<&str> = proxies.iter().take(NAMED).map(String::as_str).collect();
    let first = first.join(", ");
    match proxies.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Code;

    fn ids(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn example() -> Findings {
        Findings {
            documents: [Diagnostic::new(Code::InvalidValue, "m")].into(),
            proxies: vec![AboutProxies {
                proxies: ids(&["a", "b"]),
                findings: [Diagnostic::new(Code::NoEffect, "n")].into(),
                more: 7,
            }],
            refusals: vec![Refused {
                proxies: ids(&["1", "2", "3", "4", "5", "6", "7"]),
                type_url: TypeUrl::Route,
                finding: Diagnostic::new(Code::RejectedByProxy, "o"),
            }],
        }
    }

    #[test]
    fn text_is_grouped_by_what_it_is_about() {
        let expected = "\
documents:
  error[PF0201]: m

proxies a, b:
  warning[PF0207]: n
  and 7 more

rds refused by 1, 2, 3, 4, 5 and 2 more:
  error[PF0406]: o
";
        assert_eq!(example().to_string(), expected);
        assert_eq!(Findings::default().to_string(), "documents:\n  nothing to say\n");
    }

    #[test]
    fn json_names_every_proxy() {
        let json = example().json();
        assert_eq!(json["documents"][0]["code"], "PF0201");
        assert_eq!(json["proxies"][0]["proxies"], json!(["a", "b"]));
        assert_eq!(json["proxies"][0]["findings"][0]["message"], "n");
        assert_eq!(json["proxies"][0]["more"], 7);
        assert_eq!(json["refusals"][0]["type"], "rds");
        assert_eq!(json["refusals"][0]["proxies"].as_array().map(Vec::len), Some(7));
        assert_eq!(json["refusals"][0]["findings"][0]["code"], "PF0406");
    }

    #[test]
    fn one_proxy_can_be_asked_about() {
        let mut findings = example();
        findings.keep_proxies("b");
        assert_eq!(findings.proxies[0].proxies, ids(&["b"]));
        assert_eq!((findings.documents.len(), findings.refusals.len()), (1, 0));
    }
}
