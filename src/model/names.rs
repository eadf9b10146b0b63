//! Names that cannot be mixed up: hosts, namespaces, objects, labels.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

macro_rules! string_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        // `Borrow<str>` lets maps keyed by this type be searched with a `&str`.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> $name {
                $name(Arc::from(text))
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> $name {
                $name(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

string_newtype! {
    /// A service or route host: a DNS name, an IP address, `*`, or a name with a leading `*`.
    Hostname
}

string_newtype! {
    /// A namespace: a plain string, there is no Namespace object.
    Namespace
}

impl Hostname {
    /// Whether the name starts with `*`. Istio's host rules (`pkg/config/host`): `*X` covers any
    /// name that ends with `X`, so `*.foo.com` does not cover `foo.com`.
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with('*')
    }

    /// What follows the `*` of a wildcard; the whole name otherwise.
    fn suffix(&self) -> &str {
        self.0.strip_prefix('*').unwrap_or(&self.0)
    }

    /// Whether some name is covered by both (symmetric).
    pub fn overlaps(&self, other: &Hostname) -> bool {
        match (self.is_wildcard(), other.is_wildcard()) {
            (false, false) => self == other,
            (true, false) => other.ends_with(self.suffix()),
            (false, true) => self.ends_with(other.suffix()),
            (true, true) => {
                self.suffix().ends_with(other.suffix()) || other.suffix().ends_with(self.suffix())
            }
        }
    }

    /// Whether every name that `self` covers is covered by `other`.
    pub fn is_subset_of(&self, other: &Hostname) -> bool {
        match (self.is_wildcard(), other.is_wildcard()) {
            (_, true) => self.suffix().ends_with(other.suffix()),
            (false, false) => self == other,
            (true, false) => false,
        }
    }

    /// The more specific of two overlapping names.
    pub fn intersection(&self, other: &Hostname) -> Option<Hostname> {
        if self.is_subset_of(other) {
            Some(self.clone())
        } else if other.is_subset_of(self) {
            Some(other.clone())
        } else {
            None
        }
    }

    /// Most specific first: exact names before wildcards, then longer before shorter, then
    /// alphabetical.
    pub fn by_specificity(a: &Hostname, b: &Hostname) -> std::cmp::Ordering {
        a.is_wildcard()
            .cmp(&b.is_wildcard())
            .then_with(|| b.len().cmp(&a.len()))
            .then_with(|| a.cmp(b))
    }

    /// The name in lower case, as Envoy compares domains.
    pub fn to_lowercase(&self) -> Hostname {
        if self.0.bytes().any(|b| b.is_ascii_uppercase()) {
            Hostname::from(self.0.to_ascii_lowercase())
        } else {
            self.clone()
        }
    }
}

/// Namespace and name of a document.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: Arc<str>,
}

impl ObjectName {
    /// Puts the two together.
    pub fn new(namespace: impl Into<Namespace>, name: impl Into<Arc<str>>) -> ObjectName {
        ObjectName { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Labels of a workload, or the labels that a selector asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(pub BTreeMap<String, String>);

impl Labels {
    /// Whether every label of `selector` is here with the same value. An empty selector selects
    /// everything.
    pub fn selected_by(&self, selector: &Labels) -> bool {
        selector.0.iter().all(|(key, value)| self.0.get(key) == Some(value))
    }

    /// One label's value.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Labels that a document asks of a proxy. It can only be compared where the look at the proxy's
/// labels is noted (`generate::Viewer`): proxies that agree in all that was looked at share their
/// configuration, so a look that nobody notes would give one proxy what another should have.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(Labels);

impl Selector {
    /// The labels that are asked for.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether nothing is asked for: every proxy fits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is asked of one label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)
    }

    /// The labels as a proxy would have them that fits and has no others.
    pub fn as_labels(&self) -> &Labels {
        &self.0
    }

    /// Asks for the other's labels too; the other wins where both ask for one key.
    pub fn extend(&mut self, other: &Selector) {
        self.0.0.extend(other.0.0.clone());
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Selector {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Selector {
        Selector(iter.into_iter().collect())
    }
}

impl From<BTreeMap<String, String>> for Selector {
    fn from(labels: BTreeMap<String, String>) -> Selector {
        Selector(Labels(labels))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Labels {
        Labels(iter.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Hostname;

    fn host(text: &str) -> Hostname {
        Hostname::from(text)
    }

    #[test]
    fn a_wildcard_covers_what_ends_with_its_suffix() {
        assert!(host("a.foo.com").is_subset_of(&host("*.foo.com")));
        assert!(host("*.a.foo.com").is_subset_of(&host("*.foo.com")));
        assert!(host("barfoo.com").is_subset_of(&host("*foo.com")));
        assert!(host("anything").is_subset_of(&host("*")));
        assert!(!host("foo.com").is_subset_of(&host("*.foo.com")));
        assert!(!host("*.foo.com").is_subset_of(&host("a.foo.com")));
    }

    #[test]
    fn overlap_is_symmetric() {
        for (a, b, expected) in [
            ("a.foo.com", "*.foo.com", true),
            ("*.foo.com", "*.com", true),
            ("*.foo.com", "*.bar.com", false),
            ("a", "b", false),
            ("*", "x", true),
        ] {
            assert_eq!(host(a).overlaps(&host(b)), expected, "{a} {b}");
            assert_eq!(host(b).overlaps(&host(a)), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_intersection_keeps_the_more_specific_name() {
        assert_eq!(host("*.foo.com").intersection(&host("a.foo.com")), Some(host("a.foo.com")));
        assert_eq!(host("a.foo.com").intersection(&host("*")), Some(host("a.foo.com")));
        assert_eq!(host("a.foo.com").intersection(&host("b.foo.com")), None);
    }

    #[test]
    fn exact_names_sort_before_wildcards_and_longer_before_shorter() {
        let mut hosts = vec![host("*"), host("a.b"), host("*.b"), host("a.b.c")];
        hosts.sort_by(Hostname::by_specificity);
        assert_eq!(hosts, vec![host("a.b.c"), host("a.b"), host("*.b"), host("*")]);
    }
}
