//! Counts what is said in MongoDB's protocol, on ports that are declared to speak it.

use super::{Decided, Extra, NetworkFilter, Site};
use crate::generate::filters::Settings;
use crate::generate::plan::listener::Action;
use crate::model::Protocol;
use crate::xds::pb::{self, Any};

pub(super) struct MongoProxy;

impl NetworkFilter for MongoProxy {
    fn name(&self) -> &'static str {
        "envoy.filters.network.mongo_proxy"
    }

    fn in_chain(&self, _: &Site<'_>, action: &Action, _: &mut Extra) -> Option<Decided> {
        match action {
            Action::Tcp(proxy) if proxy.protocol == Protocol::Mongo => {
                Some(Mongo { stat_prefix: proxy.stat_prefix.clone() }.into())
            }
            Action::Tcp(_) | Action::Http(_) => None,
        }
    }
}

/// Statistics of a chain.
#[derive(Debug, PartialEq)]
struct Mongo {
    stat_prefix: String,
}

impl Settings for Mongo {
    fn spell(&self) -> Any {
        let stat_prefix = self.stat_prefix.clone();
        pb::any(&pb::mongo_proxy::MongoProxy { stat_prefix, ..Default::default() })
    }
}
