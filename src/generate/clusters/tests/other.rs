//! Clusters of what is no service.

use super::*;
use crate::generate::Viewer;
use crate::generate::clusters::seal;
use crate::generate::plan::Because;
use crate::generate::plan::cluster::{Cluster as Planned, UpstreamTls};
use crate::generate::seal::Output;
use crate::generate::test_support::in_domain;
use crate::model::MeshSettings;

/// What Envoy gets of a planned cluster, all of which it must take.
fn sealed(planned: &Planned) -> Cluster {
    let mut output = Output::default();
    seal(planned, &mut output);
    let (resources, findings) = output.into_parts();
    assert_eq!(findings, []);
    Cluster::decode(resources[0].1.body.clone()).expect("it is a cluster")
}

fn because() -> Because {
    Because::always("a test")
}

#[test]
fn a_cluster_of_names_is_resolved_and_may_have_tls() {
    let mesh = MeshSettings::default();
    let view = in_domain("default.svc.cluster.local");
    let names = [(Arc::from("keys.example"), 443), (Arc::from("keys2.example"), 443)];
    let planned = Planned {
        tls: Some(Box::new(UpstreamTls::to_server("keys.example", &mesh))),
        ..Planned::at_names("keys", because(), names, &mesh, &Viewer::new(&view))
    };
    let cluster = sealed(&planned);
    assert_eq!((&*cluster.name, &*cluster.alt_stat_name), ("keys", "keys;"));
    assert!(!dns_settings(&cluster).all_addresses_in_single_endpoint);
    let inline = cluster.load_assignment.as_ref().expect("the names are inline");
    assert_eq!(addresses(inline), ["keys.example", "keys2.example"]);
    assert_eq!(tls_context(&cluster).map(|context| context.sni).as_deref(), Some("keys.example"));
}

#[test]
fn a_cluster_of_addresses_has_them_as_hosts() {
    let address = "10.0.0.7".parse().expect("an address");
    let planned = Planned::at_addresses("x", because(), [(address, 80)], &MeshSettings::default());
    let cluster = sealed(&planned);
    assert!(has_type(&cluster, DiscoveryType::Static));
    assert_eq!(addresses(&cluster.load_assignment.expect("they are inline")), ["10.0.0.7"]);
}
