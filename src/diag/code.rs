//! The table of diagnostic codes: one row a code. A code is never reused; a retired one stays
//! listed as retired, so that old reports keep their meaning.

use super::Severity;
use std::fmt;

/// What a code means.
#[derive(Debug, Clone, Copy)]
pub struct CodeInfo {
    /// The printed form, `PF0101`.
    pub id: &'static str,
    /// A stable short name, `yaml-syntax`.
    pub name: &'static str,
    /// The severity a finding has unless it says otherwise.
    pub severity: Severity,
    /// What it means and what happens to the document, in one or two sentences.
    pub explanation: &'static str,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $severity:ident, $explanation:literal;)*) => {
        /// A stable code for a kind of finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $explanation] $variant,)* }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// What the code means.
            pub fn info(self) -> CodeInfo {
                match self {
                    $(Code::$variant => CodeInfo {
                        id: $id, name: $name, severity: Severity::$severity, explanation: $explanation,
                    },)*
                }
            }
        }
    };
}

codes! {
    // 01xx: reading files and YAML.
    FileUnreadable = "PF0101", "file-unreadable", Error, "A file or directory could not be read; what it held before stays served.";
    YamlSyntax = "PF0102", "yaml-syntax", Error, "The document is not valid YAML; its neighbours in the file are read all the same.";
    YamlDuplicateKey = "PF0103", "yaml-duplicate-key", Error, "A mapping has the same key twice; the document is refused because readers disagree on which one counts.";
    YamlLimit = "PF0104", "yaml-limit", Error, "The document is too large, too deep or expands too far; it is refused.";
    NotAnObject = "PF0105", "not-an-object", Error, "The document is not a configuration object with apiVersion, kind and metadata.name.";
    KindIgnored = "PF0106", "kind-ignored", Info, "Documents of this kind are not pilotfish's; they are ignored.";
    DuplicateDocument = "PF0107", "duplicate-document", Error, "Two documents have the same kind, namespace and name; the first in path order is served.";
    LastGoodServed = "PF0108", "last-good-served", Info, "The document is broken now; its last good version stays served until it is mended or deleted.";

    // 02xx: decoding and validation of one document.
    InvalidValue = "PF0201", "invalid-value", Error, "A value has the wrong type or is not allowed; the document is refused.";
    UnknownField = "PF0202", "unknown-field", Warning, "A field is not part of this kind; it has no effect.";
    MissingField = "PF0203", "missing-field", Error, "A required field is missing; the document is refused.";
    ConflictingFields = "PF0204", "conflicting-fields", Error, "Fields exclude each other; the document is refused.";
    NotSupported = "PF0205", "not-supported", Warning, "The field or kind is valid but pilotfish does not implement it yet; it has no effect.";
    Deprecated = "PF0206", "deprecated", Warning, "The field or form is deprecated; it still works as described.";
    NoEffect = "PF0207", "no-effect", Warning, "The field is valid but has no effect where it stands.";
    Unreachable = "PF0208", "unreachable", Warning, "A rule can never be reached because an earlier one matches all of its requests.";
    RegexTooLarge = "PF0209", "regex-too-large", Warning, "Envoy's default limit refuses this regular expression; pilotfish's bootstrap raises the limit, other bootstraps must too.";
    UnsupportedVersion = "PF0210", "unsupported-version", Error, "The kind is known but not in this apiVersion.";
    Doubtful = "PF0211", "doubtful", Warning, "The value is allowed, but seldom what is meant; it is served as it is.";
    UnknownKind = "PF0212", "unknown-kind", Error, "The kind or its API group is misspelt; the document is refused.";

    // 03xx: documents that speak about each other.
    UnknownHost = "PF0301", "unknown-host", Warning, "A destination names a host that no service has; requests to it get 503.";
    UnknownSubset = "PF0302", "unknown-subset", Warning, "A destination names a subset that no DestinationRule defines; requests to it get 503.";
    UnknownPort = "PF0303", "unknown-port", Warning, "A destination names a port that the service does not have; requests to it get 503.";
    UnknownGateway = "PF0304", "unknown-gateway", Warning, "A VirtualService names a Gateway that does not exist.";
    UnknownSecret = "PF0305", "unknown-secret", Error, "A credential is neither a Secret document nor a directory below --secrets-dir; what needs it is left out.";
    UnknownDelegate = "PF0306", "unknown-delegate", Warning, "A delegate VirtualService does not exist or may not be used from here; the rule is left out.";
    ConflictingDelegate = "PF0307", "conflicting-delegate", Warning, "A delegate's match contradicts its root's; the rule is left out.";
    OverlappingHost = "PF0308", "overlapping-host", Warning, "Several documents claim one host; precedence decides which one is served.";
    SubsetWithoutEndpoints = "PF0309", "subset-without-endpoints", Warning, "No endpoint has the labels of this subset; requests to it get 503.";
    UnboundVirtualService = "PF0310", "unbound-virtual-service", Warning, "No host of the VirtualService fits a server of the Gateway that it names.";
    DuplicateSubset = "PF0311", "duplicate-subset", Warning, "Two DestinationRules of one host define the same subset; the older one counts.";
    UnusedDocument = "PF0312", "unused-document", Warning, "Nothing refers to the document, so it has no effect.";
    BadSecret = "PF0313", "bad-secret", Error, "A secret cannot be used: not PEM, key and certificate do not belong together, or a part is missing.";
    ExpiredCertificate = "PF0314", "expired-certificate", Warning, "A certificate has expired; it is served as it is.";
    MeshConfig = "PF0315", "mesh-config", Error, "The mesh configuration cannot be used; the last good one stays in force.";
    NoEndpoints = "PF0316", "no-endpoints", Warning, "A service has no endpoints; requests to it get 503.";

    // 04xx: what a proxy gets.
    PortConflict = "PF0401", "port-conflict", Error, "Two servers claim one port in ways that cannot be combined; the first is served.";
    DuplicateSni = "PF0402", "duplicate-sni", Warning, "Two servers or routes claim one SNI host on one port; the first is served.";
    ListenerConflict = "PF0403", "listener-conflict", Warning, "Services share an address and port in a way that cannot be told apart; the first is served.";
    NothingSelected = "PF0404", "nothing-selected", Info, "No Gateway selects this proxy, so it gets no listeners.";
    NodeInvalid = "PF0405", "node-invalid", Error, "A proxy's node id or metadata cannot be understood.";
    RejectedByProxy = "PF0406", "rejected-by-proxy", Error, "Envoy refused an update; it keeps its previous configuration.";
    PrivilegedPort = "PF0408", "privileged-port", Warning, "The proxy may not bind ports below 1024; the listener is left out.";
    InvalidResource = "PF0409", "invalid-resource", Error, "A generated resource would be refused by Envoy; it is left out so that it cannot take others with it.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().id)
    }
}

#[cfg(test)]
mod tests {
    use super::Code;
    use std::collections::BTreeSet;

    #[test]
    fn ids_and_names_are_unique_and_well_formed() {
        let ids: BTreeSet<_> = Code::ALL.iter().map(|c| c.info().id).collect();
        let names: BTreeSet<_> = Code::ALL.iter().map(|c| c.info().name).collect();
        assert_eq!(ids.len(), Code::ALL.len());
        assert_eq!(names.len(), Code::ALL.len());
        for id in ids {
            assert!(id.len() == 6 && id.starts_with("PF"), "{id}");
        }
    }
}
