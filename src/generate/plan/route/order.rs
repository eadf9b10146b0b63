//! Which of several routes a request tries first.

use super::{Route, RouteList, RuleRef};
use crate::model::{HttpMatch, PathMatch, RuleOrder};
use std::cmp::Reverse;
use std::sync::Arc;

/// How narrow a match is; the narrowest sorts first. The Gateway API's order: exact paths, then the
/// longest prefix, then a method, then most headers, then most query parameters. Where it leaves
/// expressions to the implementation, they come last, as in Istio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Specificity(Reverse<(u8, usize, bool, usize, usize)>);

impl Specificity {
    pub fn of(wanted: Option<&HttpMatch>) -> Specificity {
        let Some(wanted) = wanted else { return Specificity(Reverse((1, 1, false, 0, 0))) };
        let (kind, length) = match &wanted.path {
            None => (1, 1),
            Some(PathMatch::Exact(path)) => (2, path.len()),
            Some(PathMatch::Prefix(prefix) | PathMatch::SegmentPrefix(prefix)) => {
                (1, prefix.trim_end_matches('/').len().max(1))
            }
            Some(PathMatch::Regex(pattern)) => (0, pattern.len()),
        };
        let headers = wanted.headers.len() + wanted.without_headers.len();
        let method = wanted.method.is_some();
        Specificity(Reverse((kind, length, method, headers, wanted.query_params.len())))
    }
}

/// The routes of several documents, which come in order of precedence. Those that are to be tried
/// as written follow each other; among the others the more specific comes first. What takes
/// everything as written is last, so that an old catch-all does not hide what a newer document says.
pub(super) fn merge(lists: &[Arc<RouteList>]) -> Vec<Arc<Route>> {
    let of = |order: RuleOrder| {
        let lists = lists.iter().filter(move |list| list.order == order);
        lists.flat_map(|list| list.routes.iter().cloned())
    };
    let (last, mut merged): (Vec<_>, Vec<_>) =
        of(RuleOrder::AsWritten).partition(|route| route.is_catch_all);
    let mut specific: Vec<Arc<Route>> = of(RuleOrder::MostSpecific).collect();
    specific.sort_by_key(|route| Specificity::of(route.rule.as_ref().and_then(RuleRef::wanted)));
    merged.extend(specific);
    merged.extend(last);
    merged
}
