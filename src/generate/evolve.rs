//! The set of a generation, made from that of the generation before. What did not change is not
//! touched, so the two share it, and so the streams find the difference without looking for it.

use crate::xds::{Resource, ResourceSet, TypeUrl};
use std::collections::HashSet;

/// The set of these resources; of several with one name the first counts. `before` is a similar
/// set, or an empty one: it decides how much is shared, not what comes out.
pub(super) fn evolve(
    before: &ResourceSet,
    types: impl IntoIterator<Item = TypeUrl>,
    resources: &[(TypeUrl, &Resource)],
) -> ResourceSet {
    let mut set = ResourceSet::new();
    for type_url in types {
        let map = set.map_mut(type_url);
        *map = before.map(type_url).clone();
        let mut names: HashSet<&str> = HashSet::new();
        for (_, resource) in resources.iter().filter(|(of, _)| *of == type_url) {
            if names.insert(&resource.name) {
                map.set((*resource).clone());
            }
        }
        if map.len() > names.len() {
            let gone = map.iter().filter(|r| !names.contains(&*r.name));
            let gone: Vec<_> = gone.map(|r| r.name.clone()).collect();
            for name in gone {
                map.remove(&name);
            }
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str, content: u8) -> Resource {
        Resource::new(name, vec![content])
    }

    #[test]
    fn what_was_before_decides_nothing_but_what_is_shared() {
        let types = [TypeUrl::Cluster, TypeUrl::Listener];
        let old: Vec<Resource> = (0..200).map(|n| resource(&n.to_string(), 0)).collect();
        let given = |list: &[Resource]| -> Vec<(TypeUrl, Resource)> {
            list.iter().map(|r| (TypeUrl::Cluster, r.clone())).collect()
        };
        let evolved = |before: &ResourceSet, list: &[(TypeUrl, Resource)]| {
            let list: Vec<_> = list.iter().map(|(of, r)| (*of, r)).collect();
            evolve(before, types, &list)
        };
        let before = evolved(&ResourceSet::new(), &given(&old));
        let mut new = given(&old[10..]);
        new.push((TypeUrl::Cluster, resource("x", 1)));
        new.push((TypeUrl::Cluster, resource("x", 2)));
        new[3].1 = resource("13", 1);
        new.push((TypeUrl::Listener, resource("l", 1)));
        let after = evolved(&before, &new);
        assert_eq!(after, evolved(&ResourceSet::new(), &new));
        assert_eq!(after.get(TypeUrl::Cluster, "x").map(|r| r.body.to_vec()), Some(vec![1]));
        assert!(evolved(&after, &new).map(TypeUrl::Cluster).ptr_eq(after.map(TypeUrl::Cluster)));
    }
}
