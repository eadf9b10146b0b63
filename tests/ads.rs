//! The real server on a real socket with a scripted raw client: what goes over the wire, and what
//! happens to streams that misbehave, are slow, or end.

#[path = "support/xds.rs"]
mod xds;

use pilotfish::generate::Generated;
use pilotfish::proxy::{NodeDescription, NodeError};
use pilotfish::server::{Resources, Settings};
use pilotfish::xds::pb::core::Node;
use pilotfish::xds::pb::discovery::DiscoveryRequest;
use pilotfish::xds::{Resource, ResourceSet, TypeUrl};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tonic::Code;
use xds::{Delta, Server, State, until};

const WORLD: &str = "cds a=1 b=1; eds a=1 b=1; lds l=1; rds r=1; sds k=1";

#[tokio::test]
async fn state_of_the_world_subscribe_ack_change_unsubscribe() {
    let server = Server::start(WORLD).await;
    let mut client = server.state().await;
    client.ask("cds", "");
    client.expect(&["cds a=1 b=1"]).await;
    client.ask("cds", "");
    client.ask("eds", "a b");
    client.expect(&["eds a=1 b=1"]).await;
    client.ask("eds", "a b");
    client.quiet().await;
    server.push("cds a=1 b=1; eds a=2 b=1");
    client.expect(&["eds a=2"]).await;
    client.ask("eds", "b");
    client.quiet().await;
    server.push("cds a=1 b=1 c=1; eds a=3 b=1");
    client.expect(&["cds a=1 b=1 c=1"]).await;
    client.quiet().await;
}

#[tokio::test]
async fn delta_subscribe_ack_change_unsubscribe() {
    let server = Server::start(WORLD).await;
    let mut client = server.delta().await;
    client.change("cds", "");
    client.expect(&["cds a=1 b=1"]).await;
    client.ack("cds");
    client.change("eds", "+a +b");
    client.expect(&["eds a=1 b=1"]).await;
    client.ack("eds");
    client.quiet().await;
    server.push("cds a=1 b=1; eds a=2 b=1");
    client.expect(&["eds a=2"]).await;
    client.change("eds", "-a");
    client.quiet().await;
    server.push("cds a=1 c=1; eds a=3 b=1");
    client.expect(&["cds c=1 -b"]).await;
    client.quiet().await;
}

#[tokio::test]
async fn a_push_goes_out_in_order_with_gone_clusters_last() {
    let server = Server::start("cds old=1; eds old=1; lds l=1; rds r=1; sds k=1").await;
    let moved = "cds new=1; eds new=1; lds l=2; rds r=2; sds k=2";
    let mut delta = server.delta().await;
    for (kind, names) in [("cds", ""), ("eds", "+old"), ("lds", ""), ("rds", "+r"), ("sds", "+k")] {
        delta.change(kind, names);
        delta.next().await;
    }
    let mut state = server.state().await;
    for (kind, names) in [("cds", ""), ("eds", "old"), ("lds", ""), ("rds", "r"), ("sds", "k")] {
        state.ask(kind, names);
        state.next().await;
    }
    server.push(moved);
    delta.expect(&["cds new=1", "eds new=1", "lds l=2", "rds r=2", "sds k=2", "cds -old"]).await;
    state.expect(&["cds new=1 old=1", "eds new=1", "lds l=2"]).await;
    state.expect(&["rds r=2", "sds k=2", "cds new=1"]).await;
}

#[tokio::test]
async fn endpoints_of_a_changed_cluster_are_sent_again() {
    let server = Server::start(WORLD).await;
    let mut state = server.state().await;
    state.ask("cds", "");
    state.next().await;
    state.ask("eds", "a b");
    state.next().await;
    let mut delta = server.delta().await;
    delta.change("cds", "");
    delta.next().await;
    delta.change("eds", "+a +b");
    delta.next().await;
    server.push("cds a=2 b=1; eds a=1 b=1");
    state.expect(&["cds a=2 b=1", "eds a=1"]).await;
    delta.expect(&["cds a=2", "eds a=1"]).await;
}

#[tokio::test]
async fn unknown_names_get_an_answer() {
    let server = Server::start(WORLD).await;
    let mut delta = server.delta().await;
    for (kind, expected) in [
        ("cds", "cds -x"),
        ("eds", "eds x=()"),
        ("lds", "lds -x"),
        ("rds", "rds x=()"),
        ("sds", "sds -x"),
    ] {
        delta.change(kind, "+x");
        delta.expect(&[expected]).await;
    }
    let mut state = server.state().await;
    state.ask("rds", "x");
    state.expect(&["rds x=()"]).await;
    state.ask("eds", "x");
    state.expect(&["eds x=()"]).await;
    state.ask("sds", "x");
    state.ask("rds", "x");
    state.ask("lds", "");
    state.expect(&["lds l=1"]).await;
    server.push("rds x=1; sds x=1");
    state.expect(&["lds", "rds x=1", "sds x=1"]).await;
    delta.expect(&["rds x=1", "sds x=1"]).await;
}

#[tokio::test]
async fn wildcards_follow_the_names() {
    let server = Server::start(WORLD).await;
    let mut state = server.state().await;
    state.ask("cds", "a");
    state.expect(&["cds a=1"]).await;
    state.ask("cds", "");
    state.quiet().await;
    state.ask("cds", "*");
    state.expect(&["cds a=1 b=1"]).await;
    let mut delta = server.delta().await;
    delta.change("cds", "");
    delta.expect(&["cds a=1 b=1"]).await;
    delta.change("cds", "+a");
    delta.expect(&["cds a=1"]).await;
    delta.change("cds", "-*");
    delta.quiet().await;
    server.push("cds a=1 b=2");
    delta.quiet().await;
}

#[tokio::test]
async fn a_refusal_is_reported_shown_and_not_answered() {
    let server = Server::start(WORLD).await;
    let mut client = server.state().await;
    client.ask("cds", "");
    client.next().await;
    client.nack("cds", "", "bad cluster\nreally");
    client.quiet().await;
    let expected = "error[PF0406]: the proxy refused its clusters: bad cluster really (proxy p)";
    assert_eq!(*server.refusals.lock().unwrap(), [expected]);
    let shown = || {
        let types = server.xds.connections().list()[0].progress().types;
        types.into_iter().find(|t| &*t.type_url == TypeUrl::Cluster.as_str()).unwrap()
    };
    assert_eq!(shown().last_error.as_deref(), Some("bad cluster really"));
    assert_ne!(shown().sent, shown().acked);
    server.push("cds a=1 b=2");
    client.expect(&["cds a=1 b=2"]).await;
    client.ask("cds", "");
    client.quiet().await;
    assert_eq!(shown().last_error, None);
    assert_eq!(shown().sent, shown().acked);
}

#[tokio::test]
async fn what_happens_to_a_connection_is_told_in_order_and_its_end_last() {
    let server = Server::start(WORLD).await;
    let mut client = server.state().await;
    client.ask("cds", "");
    client.next().await;
    client.nack("cds", "", "bad");
    client.quiet().await;
    server.push("cds a=1 b=2");
    client.next().await;
    client.ask("cds", "");
    client.quiet().await;
    drop(client);
    server.connected(0).await;
    let told = server.told.lock().unwrap().clone();
    let expected = [
        "p generated, findings: 0",
        "p refused cds",
        "p generated, findings: 0",
        "p accepted cds",
        "p disconnected",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_stale_request_is_answered_after_the_response_it_has_not_seen() {
    let server = Server::start(WORLD).await;
    let mut client = server.state().await;
    client.ask("eds", "a");
    client.next().await;
    let old = client.nonce("eds");
    server.push("eds a=2 b=1");
    client.expect(&["eds a=2"]).await;
    client.ask_with("eds", &old, "a b");
    client.quiet().await;
    client.ask("eds", "a b");
    client.expect(&["eds b=1"]).await;
}

#[tokio::test]
async fn a_reconnecting_client_is_answered_whatever_it_remembers() {
    let server = Server::start(WORLD).await;
    let mut client = server.state().await;
    client.ask("cds", "");
    client.next().await;
    let nonce = client.nonce("cds");
    drop(client);
    let mut client = server.state().await;
    client.ask_with("cds", &nonce, "");
    client.expect(&["cds a=1 b=1"]).await;

    let mut client = server.delta().await;
    client.change("cds", "a@1 b@0 gone@1");
    client.expect(&["cds b=1 -gone"]).await;
    client.change("eds", "+a a@1");
    client.expect(&["eds a=1"]).await;
}

#[tokio::test]
async fn streams_of_one_node_are_independent() {
    let server = Server::start(WORLD).await;
    let channel = server.channel().await;
    let mut first = State::on(channel.clone(), "p").await.unwrap();
    let mut second = State::on(channel, "p").await.unwrap();
    first.ask("eds", "a");
    first.expect(&["eds a=1"]).await;
    second.ask("eds", "b");
    second.expect(&["eds b=1"]).await;
    server.connected(2).await;
    drop(first);
    server.connected(1).await;
    server.push("eds a=2 b=2");
    second.expect(&["eds b=2"]).await;
}

#[tokio::test]
async fn the_node_is_that_of_the_first_message() {
    let server = Server::start(WORLD).await;
    let mut client = server.state().await;
    client.ask("cds", "");
    client.next().await;
    client.send(DiscoveryRequest {
        node: Some(Node { id: "refused".into(), ..Default::default() }),
        type_url: TypeUrl::Listener.as_str().into(),
        ..Default::default()
    });
    client.expect(&["lds l=1"]).await;
    assert_eq!(server.xds.connections().list()[0].node.id, "p");
}

#[tokio::test]
async fn a_stream_that_makes_no_sense_ends_and_its_neighbours_live() {
    let server = Server::start(WORLD).await;
    let channel = server.channel().await;
    let mut neighbour = State::on(channel.clone(), "p").await.unwrap();
    neighbour.ask("cds", "");
    neighbour.next().await;

    let cluster = TypeUrl::Cluster.as_str().to_owned();
    let mut nobody = State::on(channel.clone(), "").await.unwrap();
    nobody.ask("cds", "");
    let mut anonymous = State::on(channel.clone(), "p").await.unwrap();
    anonymous.send(DiscoveryRequest { type_url: cluster, ..Default::default() });
    let mut refused = State::on(channel.clone(), "refused").await.unwrap();
    refused.ask("cds", "");
    let mut typeless = State::on(channel, "p").await.unwrap();
    typeless.ask("lds", "");
    typeless.next().await;
    typeless.send(DiscoveryRequest::default());
    for (client, message) in [
        (&mut nobody, "missing node information"),
        (&mut anonymous, "missing node information"),
        (&mut refused, "node 'refused': not welcome"),
        (&mut typeless, "type_url is missing"),
    ] {
        let end = client.end().await;
        assert_eq!((end.code(), end.message()), (Code::InvalidArgument, message));
    }
    neighbour.quiet().await;
    server.connected(1).await;
}

#[tokio::test]
async fn a_stream_for_one_type_needs_no_type_and_takes_no_other() {
    let server = Server::start(WORLD).await;
    let channel = server.channel().await;
    let path = "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters";
    let mut clusters = State::at(channel.clone(), "p", path).await.unwrap();
    clusters.send(DiscoveryRequest {
        node: Some(Node { id: "p".into(), ..Default::default() }),
        ..Default::default()
    });
    clusters.expect(&["cds a=1 b=1"]).await;
    server.push("cds a=2 b=1; lds l=2");
    clusters.expect(&["cds a=2 b=1"]).await;
    clusters.ask("lds", "");
    assert_eq!(clusters.end().await.code(), Code::InvalidArgument);

    let unknown = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";
    let refused = State::at(channel, "p", unknown).await.err().expect("refused");
    assert_eq!(refused.code(), Code::Unimplemented);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_break_off_leave_nothing_behind() {
    let settings = Settings { push_throttle: 2, ..Settings::default() };
    let server = Server::with(settings, Some(WORLD)).await;
    for i in 0..200_usize {
        let mut client = server.state().await;
        let kinds = ["cds", "eds", "lds", "rds", "sds"];
        for kind in &kinds[..i % 6] {
            client.ask(kind, "");
        }
        if i % 2 == 0 && i % 6 > 0 {
            client.next().await;
        }
        server.push(if i % 3 == 0 { "cds a=1" } else { "cds a=2; lds l=2" });
    }
    server.connected(0).await;
    until(|| server.xds.waiting_pushes() == 0).await;
    let mut client = server.state().await;
    client.ask("cds", "");
    client.next().await;
    server.push("cds a=3");
    client.expect(&["cds a=3"]).await;
}

#[tokio::test]
async fn nothing_is_served_before_the_configuration_was_read() {
    let server = Server::with(Settings::default(), None).await;
    let channel = server.channel().await;
    let state = State::on(channel.clone(), "p").await.err().expect("refused");
    let delta = Delta::on(channel, "p").await.err().expect("refused");
    assert_eq!((state.code(), delta.code()), (Code::Unavailable, Code::Unavailable));
    server.set(xds::set(""));
    let mut client = server.state().await;
    client.ask("cds", "");
    client.expect(&["cds"]).await;
}

#[tokio::test]
async fn shutting_down_ends_streams_with_unavailable() {
    let server = Server::start(WORLD).await;
    let mut served = server.state().await;
    served.ask("cds", "");
    served.next().await;
    let mut silent = server.delta().await;
    server.stop.cancel();
    assert_eq!(served.end().await.code(), Code::Unavailable);
    assert_eq!(silent.end().await.code(), Code::Unavailable);
    server.shut_down().await;
}

#[tokio::test]
async fn a_client_that_finishes_ends_its_stream_well() {
    let server = Server::start(WORLD).await;
    let State { requests, .. } = {
        let mut client = server.state().await;
        client.ask("cds", "");
        client.next().await;
        server.connected(1).await;
        client
    };
    drop(requests);
    server.connected(0).await;
}

#[tokio::test]
async fn a_generation_that_cannot_be_made_for_one_node_leaves_it_what_it_has() {
    let server = Server::start(WORLD).await;
    let mut cursed = State::on(server.channel().await, "cursed").await.unwrap();
    cursed.ask("cds", "");
    cursed.expect(&["cds a=1 b=1"]).await;
    let mut other = server.state().await;
    other.ask("cds", "");
    other.next().await;
    server.push("cds a=1 curse=1");
    other.expect(&["cds a=1 curse=1"]).await;
    cursed.quiet().await;
    server.push("cds a=3");
    cursed.expect(&["cds a=3"]).await;
}

#[tokio::test]
async fn a_busy_port_is_tried_again_after_a_while() {
    let settings = Settings { retry_after: Duration::from_millis(20), ..Settings::default() };
    let server = Server::with(settings, Some(WORLD)).await;
    let mut client = server.state().await;
    client.ask("lds", "");
    client.next().await;
    for _ in 0..2 {
        client.nack("lds", "", "cannot bind '127.0.0.1:80': Address already in use");
        client.expect(&["lds l=1"]).await;
    }
    client.ask("lds", "");
    client.quiet().await;
}

/// So many megabytes of clusters. No window holds ten.
fn large(megabytes: usize, content: u8) -> ResourceSet {
    let mut set = ResourceSet::new();
    for i in 0..megabytes {
        let mut body = format!("c{i}=").into_bytes();
        body.resize(1_000_000, content);
        set.insert(TypeUrl::Cluster, Resource::new(format!("c{i}"), body));
    }
    set
}

#[tokio::test]
async fn a_response_of_forty_megabytes_arrives_whole() {
    let server = Server::with(Settings::default(), None).await;
    server.set(large(40, b'x'));
    let mut client = server.state().await;
    client.ask("cds", "");
    let response = client.message().await.unwrap();
    assert_eq!(response.resources.len(), 40);
    assert!(response.resources.iter().all(|any| any.value.len() == 1_000_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_holds_up_nobody_and_gets_the_newest_when_it_does() {
    const LAST: u8 = 12;
    let settings = Settings { push_throttle: 2, ..Settings::default() };
    let server = Server::with(settings, None).await;
    server.set(large(10, 0));
    let mut stuck = Vec::new();
    for _ in 0..4 {
        let mut client = server.state().await;
        client.ask("cds", "");
        stuck.push(client);
    }
    server.connected(4).await;
    let mut reader = server.delta().await;
    reader.change("lds", "");
    reader.next().await;
    for n in 1..=LAST {
        let mut set = large(10, n);
        set.insert(TypeUrl::Listener, Resource::new("l", format!("l={n}")));
        server.push_set(set);
        reader.expect(&[&format!("lds l={n}")]).await;
    }
    for client in &mut stuck {
        let mut n = 0;
        loop {
            n += 1;
            let response = client.message().await.unwrap();
            if response.resources[0].value.last() == Some(&LAST) {
                break;
            }
        }
        assert!(n <= 4, "{n} responses for a client that needed the last one");
    }
    until(|| server.xds.waiting_pushes() == 0).await;
}

/// Computations that do not end before the gate is open.
#[derive(Default)]
struct Gate {
    counts: Mutex<Counts>,
    opened: Condvar,
}

#[derive(Default)]
struct Counts {
    open: bool,
    running: usize,
    most: usize,
}

struct Gated(Arc<Gate>);

impl Gate {
    fn running(&self) -> usize {
        self.counts.lock().unwrap().running
    }

    fn open(&self) {
        self.counts.lock().unwrap().open = true;
        self.opened.notify_all();
    }
}

/// Opens the gate at the end of the test, so that one which fails does not wait for ever.
struct OpenInTheEnd(Arc<Gate>);

impl Drop for OpenInTheEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Resources for Gated {
    fn resources(&self, _: &NodeDescription) -> Result<Arc<Generated>, NodeError> {
        let mut counts = self.0.counts.lock().unwrap();
        counts.running += 1;
        counts.most = counts.most.max(counts.running);
        let mut counts = self.0.opened.wait_while(counts, |counts| !counts.open).unwrap();
        counts.running -= 1;
        Ok(Arc::new(Generated { set: Arc::new(xds::set("cds a=1")), ..Generated::default() }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_connect_at_once_are_computed_a_few_at_a_time() {
    // The throttle of pushes counts, and so does the number of cores.
    for (push_throttle, computations, at_once) in [(3, 50, 3), (50, 2, 2)] {
        let settings = Settings { push_throttle, computations, ..Settings::default() };
        let server = Server::with(settings, None).await;
        let gate = Arc::new(Gate::default());
        let _open = OpenInTheEnd(gate.clone());
        server.set_from(Gated(gate.clone()));
        let channel = server.channel().await;
        let mut clients = Vec::new();
        for _ in 0..50 {
            let mut client = State::on(channel.clone(), "p").await.unwrap();
            client.ask("cds", "");
            clients.push(client);
        }
        until(|| gate.running() >= at_once).await;
        // A round trip behind all requests: they have arrived, and those that wait are waiting.
        let unknown = State::at(channel, "p", "/unknown/Method").await.err().expect("refused");
        assert_eq!(unknown.code(), Code::Unimplemented);
        gate.open();
        for client in &mut clients {
            client.expect(&["cds a=1"]).await;
        }
        let most = gate.counts.lock().unwrap().most;
        assert_eq!(most, at_once);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_writes_before_it_reads_is_not_stuck() {
    let server = Server::with(Settings::default(), None).await;
    server.set(large(10, b'x'));
    let mut client = server.state().await;
    client.ask("cds", "");
    for _ in 0..10_000 {
        client.ask_with("cds", "garbage", "");
    }
    client.ask_with("eds", "", "last");
    assert_eq!(client.message().await.unwrap().resources.len(), 10);
    client.expect(&["eds last=()"]).await;
}
