//! One wrong value gives one error: nothing else of a document is blamed for it.

use super::KINDS;
use super::testing::read;
use crate::config::{self, Node, SourceFile, Value};
use crate::diag::{Position, Severity};

/// Documents that use many fields, one a kind.
const DOCUMENTS: &[&str] = &[
    "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: x}
spec:
  hosts: [a.example.com]
  gateways: [mesh, shop/edge]
  exportTo: ['.']
  http:
  - name: first
    match:
    - uri: {prefix: /a}
      headers: {x-id: {regex: a+}}
      port: 80
    rewrite: {uri: /b}
    retries: {attempts: 3, perTryTimeout: 2s, retryOn: 5xx}
    fault: {delay: {percentage: {value: 10}, fixedDelay: 5s}}
    corsPolicy: {allowOrigins: [{exact: 'https://a.example'}], allowMethods: [GET], maxAge: 1h}
    headers: {request: {set: {x-a: b}, remove: [x-c]}}
    mirrors: [{destination: {host: c}, percentage: {value: 5}}]
    timeout: 5s
    route:
    - destination: {host: b, subset: v1, port: {number: 80}}
      weight: 10
    - destination: {host: b, subset: v2}
      weight: 90
  - match: [{uri: {exact: /old}}]
    redirect: {uri: /new, authority: b.example.com, redirectCode: 308}
  - match: [{uri: {exact: /no}}]
    directResponse: {status: 404, body: {string: none}}
  - route: [{destination: {host: d}}]
  tls:
  - match: [{port: 443, sniHosts: [a.example.com]}]
    route: [{destination: {host: e, port: {number: 443}}}]
",
    "\
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: x}
spec:
  host: a.example.com
  trafficPolicy:
    connectionPool:
      tcp: {maxConnections: 10, connectTimeout: 5s}
      http: {http1MaxPendingRequests: 5, maxRetries: 3}
    outlierDetection: {consecutive5xxErrors: 7, interval: 5m, baseEjectionTime: 15m}
    loadBalancer: {consistentHash: {httpCookie: {name: user, ttl: 10s}}}
    portLevelSettings:
    - port: {number: 80}
      loadBalancer: {simple: ROUND_ROBIN}
    tls: {mode: SIMPLE, sni: a.example.com}
  subsets:
  - {name: v1, labels: {version: v1}}
  - name: v2
    labels: {version: v2}
    trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}
",
    "\
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: x}
spec:
  hosts: [a.example.com]
  addresses: [10.0.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {number: 80, name: http, protocol: HTTP, targetPort: 8080}
  - {number: 443, name: https, protocol: HTTPS}
  endpoints:
  - {address: 10.1.0.1, ports: {http: 8080}, labels: {version: v1}, weight: 5, locality: a/b}
  - {address: 10.1.0.2}
",
    "\
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: x}
spec:
  selector: {app: edge}
  servers:
  - port: {number: 80, name: http, protocol: HTTP}
    hosts: [a.example.com]
    tls: {httpsRedirect: true}
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: [a.example.com]
    tls: {mode: SIMPLE, credentialName: a, minProtocolVersion: TLSV1_2}
",
    "\
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: x}
spec: {address: 10.0.0.1, ports: {http: 80}, labels: {app: a}, weight: 3, locality: a/b}
",
    "\
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: x}
spec:
  workloadSelector: {labels: {app: a}}
  ingress:
  - port: {number: 9080, protocol: HTTP, name: http}
    defaultEndpoint: 127.0.0.1:8080
  egress:
  - port: {number: 9000, protocol: HTTP, name: egress}
    bind: 127.0.0.1
    hosts: ['./*']
  - hosts: ['./*']
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
",
];

/// The places of the values of the spec that hold no others.
fn leaves(node: &Node, found: &mut Vec<(Position, Position)>) {
    match &node.value {
        Value::Mapping(entries) => entries.iter().for_each(|(_, value)| leaves(value, found)),
        Value::Sequence(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {
            found.push((node.span.start, node.span.end));
        }
    }
}

/// The text with `[[]]`, which fits no field, at a range of one line.
fn spoiled(text: &str, start: Position, end: Position) -> String {
    let mut out = String::new();
    for (index, line) in text.lines().enumerate() {
        if index + 1 == start.line as usize {
            let (from, to) = (start.column as usize - 1, end.column as usize - 1);
            out.push_str(&format!("{}[[]]{}\n", &line[..from], &line[to..]));
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[test]
fn one_wrong_value_gives_one_error() {
    let mut wrong = Vec::new();
    for text in DOCUMENTS {
        let whole = read(text);
        assert!(whole.draft.is_some(), "{:#?}", whole.found);
        let allowed: Vec<String> = whole.found.iter().map(|d| d.message.clone()).collect();
        let reading = config::read(&SourceFile::new("a.yaml", *text));
        let document = &reading.documents[0];
        let mut places = Vec::new();
        leaves(document.root.get("spec").expect("it has a spec"), &mut places);
        for (start, end) in places {
            let outcome = read(&spoiled(text, start, end));
            let mut errors = 0;
            for found in &outcome.found {
                let span = found.span.as_ref().expect("it has a place");
                let is_here = span.start.line == start.line
                    && span.start.column >= start.column
                    && span.start.column <= start.column + 2;
                match found.severity {
                    Severity::Error if is_here => errors += 1,
                    Severity::Warning if allowed.contains(&found.message) => {}
                    Severity::Error | Severity::Warning | Severity::Info => {
                        wrong.push(format!("{start:?}: {found}"));
                    }
                }
            }
            if errors == 0 {
                wrong.push(format!("{start:?}: no error ({})", document.header.object()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_kind_with_a_spec_has_a_document() {
    for kind in KINDS.iter().filter(|kind| kind.name() != "Secret") {
        let head = format!(
            "apiVersion: {}/{}\nkind: {}\n",
            kind.about.group,
            kind.about.versions[0],
            kind.name()
        );
        assert!(DOCUMENTS.iter().any(|text| text.starts_with(&head)), "{head}");
    }
}
