//! What is made again, and what is used again.

use super::{RouteParts, proto};
use crate::generate::filters::Extra;
use crate::generate::plan::listener::{edge, egress};
use crate::generate::plan::route::{self as plan, RouteTable};
use crate::generate::test_support::*;
use crate::model::Protocol::Http;
use crate::model::{Namespace, Routing, Service, Services, VirtualService};
use crate::xds::canonical;
use crate::xds::pb::Message;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The table of port 80, and its bytes.
fn table(parts: &RouteParts, routing: &Arc<Routing>, view: &Parts) -> (Arc<RouteTable>, Vec<u8>) {
    Eyes::on(routing.clone(), view).look(|scope| {
        let (tables, extra) = plan::tables(scope, parts, &edge::plan(scope), &egress::plan(scope));
        assert_eq!(extra, Extra::default());
        let found = tables.into_iter().find(|table| &*table.name == "80").unwrap();
        let sealed = parts.sealed(&found, scope.view);
        let bytes = sealed.as_ref().as_ref().unwrap().body.to_vec();
        (found, bytes)
    })
}

/// Which virtual hosts of `b` are not the very same as in `a`.
fn differing(a: &RouteTable, b: &RouteTable) -> Vec<String> {
    let known: BTreeMap<&str, _> = a.hosts.iter().map(|host| (&*host.name, host)).collect();
    let same = |host: &&Arc<plan::VirtualHost>| {
        known.get(&*host.name).is_some_and(|other| Arc::ptr_eq(other, host))
    };
    b.hosts.iter().filter(|host| !same(host)).map(|host| host.name.to_string()).collect()
}

fn of_namespace(namespace: &str) -> Parts {
    Parts {
        namespace: Namespace::from(namespace),
        domain: format!("{namespace}.svc.cluster.local").into(),
        ..sidecar()
    }
}

fn mesh() -> Arc<Routing> {
    let hosts = ["a.one", "b.one", "c.two", "d.three"];
    let services = hosts.map(|host| service(&format!("{host}.svc.cluster.local"), &[(80, Http)]));
    let rule = virtual_service("v", &["b.one.svc.cluster.local"], vec![rule_to("x.com")]);
    snapshot(services.to_vec(), vec![rule]).snapshot().routing
}

fn with_services(routing: &Routing, change: impl Fn(usize, &mut Arc<Service>)) -> Arc<Routing> {
    let mut list: Vec<Arc<Service>> = routing.services.iter().map(|(_, s)| s.clone()).collect();
    list.iter_mut().enumerate().for_each(|(i, service)| change(i, service));
    Arc::new(Routing { services: Arc::new(Services::new(list)), ..routing.clone() })
}

#[test]
fn a_table_made_of_fragments_is_the_table_encoded_as_a_whole() {
    let (_, bytes) = table(&RouteParts::default(), &mesh(), &of_namespace("one"));
    let whole = proto::RouteConfiguration::decode(&*bytes).unwrap();
    assert_eq!(whole.virtual_hosts.len(), 5);
    assert_eq!(canonical::bytes(&whole), bytes);
}

#[test]
fn namespaces_differ_only_in_their_own_hosts_and_others_share_the_table() {
    let (parts, routing) = (RouteParts::default(), mesh());
    let of = |namespace| table(&parts, &routing, &of_namespace(namespace)).0;
    assert_eq!(
        differing(&of("one"), &of("two")),
        ["a.one.svc.cluster.local:80", "b.one.svc.cluster.local:80", "c.two.svc.cluster.local:80"]
    );
    assert!(Arc::ptr_eq(&of("nine"), &of("ten")));
}

#[test]
fn a_change_of_one_service_makes_its_virtual_host_again_and_no_other() {
    let (parts, before) = (RouteParts::default(), mesh());
    let after = with_services(&before, |i, service| {
        if i == 2 {
            *service = Arc::new(Service { addresses: Vec::new(), ..(**service).clone() });
        }
    });
    let view = of_namespace("one");
    let [(before, _), (after, _)] = [before, after].map(|r| table(&parts, &r, &view));
    assert_eq!(differing(&before, &after), ["c.two.svc.cluster.local:80"]);
}

#[test]
fn a_change_of_one_virtual_service_makes_the_hosts_that_it_claims_again_and_no_other() {
    let (parts, before) = (RouteParts::default(), mesh());
    let changed =
        VirtualService { http: vec![rule_to("y.com")], ..(*before.virtual_services[0]).clone() };
    let after = Routing { virtual_services: [Arc::new(changed)].into(), ..(*before).clone() };
    let view = of_namespace("one");
    let [(before, _), (after, _)] = [before, Arc::new(after)].map(|r| table(&parts, &r, &view));
    assert_eq!(differing(&before, &after), ["b.one.svc.cluster.local:80"]);
}

#[test]
fn what_no_table_in_use_has_is_forgotten_and_the_rest_is_not() {
    let (parts, routing) = (RouteParts::default(), mesh());
    let view = of_namespace("one");
    let (kept, _) = table(&parts, &routing, &view);
    parts.sweep();
    let (again, _) = table(&parts, &routing, &view);
    assert!(Arc::ptr_eq(&kept, &again));
    let hosts: Vec<_> = kept.hosts.iter().map(Arc::downgrade).collect();
    drop((kept, again));
    parts.sweep();
    assert!(hosts.iter().all(|host| host.upgrade().is_none()));
}
