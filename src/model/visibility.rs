//! `exportTo`: who may see a document.

use super::Namespace;
use std::collections::BTreeSet;

/// Which namespaces see a service, a VirtualService or a DestinationRule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Visibility {
    /// `*`: everybody.
    Public,
    /// The namespaces listed (`.` is already replaced by the own one).
    Namespaces(BTreeSet<Namespace>),
    /// `~`: nobody, not even the own namespace.
    Nobody,
}

impl Visibility {
    /// Reads an `exportTo` list of a document in `own`. `*` wins over everything, then `~`.
    /// An empty list is the caller's default, so it gives `None`.
    pub fn from_export_to<S: AsRef<str>>(export_to: &[S], own: &Namespace) -> Option<Visibility> {
        if export_to.is_empty() {
            return None;
        }
        let has = |what: &str| export_to.iter().any(|e| e.as_ref() == what);
        if has("*") {
            return Some(Visibility::Public);
        }
        if has("~") {
            return Some(Visibility::Nobody);
        }
        let namespaces = export_to.iter().map(|entry| match entry.as_ref() {
            "." => own.clone(),
            name => Namespace::from(name),
        });
        Some(Visibility::Namespaces(namespaces.collect()))
    }

    /// Whether a proxy of this namespace may see it.
    pub fn includes(&self, namespace: &Namespace) -> bool {
        match self {
            Visibility::Public => true,
            Visibility::Namespaces(list) => list.contains(namespace),
            Visibility::Nobody => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_wins_over_tilde_and_names() {
        let own = Namespace::from("a");
        assert_eq!(Visibility::from_export_to(&["b", "*", "~"], &own), Some(Visibility::Public));
        assert_eq!(Visibility::from_export_to(&["~", "b"], &own), Some(Visibility::Nobody));
        assert_eq!(Visibility::from_export_to::<&str>(&[], &own), None);
    }

    #[test]
    fn a_dot_is_the_own_namespace() {
        let visibility = Visibility::from_export_to(&[".", "b"], &Namespace::from("a"));
        let visibility = visibility.expect("the list is not empty");
        assert!(visibility.includes(&"a".into()) && visibility.includes(&"b".into()));
        assert!(!visibility.includes(&"c".into()));
    }
}
