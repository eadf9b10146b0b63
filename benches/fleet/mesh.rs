//! The mesh that is served: its files, who sees what of it, and the edits.

use super::wire;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a mesh and its proxies look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// Sidecars that see every service.
    Sidecars,
    /// Sidecars whose namespace has a Sidecar document: they see it and a few others.
    Scoped,
    /// Routers that serve every service through one Gateway.
    Routers,
    /// Sidecars, and services with Kubernetes' host names. Those have short forms that mean
    /// another service in each namespace, so that route tables differ by namespace.
    ShortNames,
}

/// How many other namespaces a scoped namespace sees.
const NEIGHBOURS: usize = 3;
/// Every so many services one has a VirtualService and a DestinationRule.
const ROUTED: usize = 10;

/// The numbers of a mesh.
#[derive(Debug, Clone, Copy)]
pub struct Mesh {
    /// What it looks like.
    pub shape: Shape,
    /// How many services there are.
    pub services: usize,
    /// How many namespaces they, and the proxies, are spread over.
    pub namespaces: usize,
}

impl Mesh {
    /// Writes a file for each service, and those that the shape adds.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        for service in 0..self.services {
            fs::write(self.path(dir, service), self.service(service))?;
        }
        match self.shape {
            Shape::Sidecars | Shape::ShortNames => {}
            Shape::Routers => fs::write(dir.join("gateway.yaml"), GATEWAY)?,
            Shape::Scoped => {
                for namespace in 0..self.namespaces {
                    let path = dir.join(format!("sidecar-{namespace}.yaml"));
                    fs::write(path, self.sidecar(namespace))?;
                }
            }
        }
        Ok(())
    }

    fn path(&self, dir: &Path, service: usize) -> PathBuf {
        dir.join(format!("service-{service}.yaml"))
    }

    fn host(&self, service: usize) -> String {
        match self.shape {
            Shape::ShortNames => {
                format!("s{service}.ns-{}.svc.cluster.local", service % self.namespaces)
            }
            Shape::Sidecars | Shape::Scoped | Shape::Routers => format!("s{service}.mesh.example"),
        }
    }

    /// A service with an address of its own and two endpoints; some with routes and subsets.
    fn service(&self, n: usize) -> String {
        let host = self.host(n);
        let namespace = n % self.namespaces;
        let (a, b, c) = (n / 65_536, n / 256 % 256, n % 256);
        let header = |kind: &str| {
            format!(
                "apiVersion: networking.istio.io/v1\nkind: {kind}\n\
                 metadata: {{name: s{n}, namespace: ns-{namespace}}}\nspec:\n"
            )
        };
        let entry = header("ServiceEntry")
            + &format!(
                "  hosts: [{host}]
  addresses: [10.{}.{b}.{c}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{{number: 80, name: http, protocol: HTTP}}]
  endpoints:
  - {{address: 10.{}.{b}.{c}, labels: {{version: v1}}}}
  - {{address: 10.{}.{b}.{c}, labels: {{version: v2}}}}
",
                1 + a,
                100 + a,
                150 + a
            );
        // A router only has routes for what is bound to its Gateway.
        let routed = match self.shape {
            Shape::Routers => true,
            Shape::Sidecars | Shape::Scoped | Shape::ShortNames => n.is_multiple_of(ROUTED),
        };
        if !routed {
            return entry;
        }
        let gateways = match self.shape {
            Shape::Routers => "  gateways: [ns-0/edge]\n",
            Shape::Sidecars | Shape::Scoped | Shape::ShortNames => "",
        };
        let rule = header("DestinationRule")
            + &format!(
                "  host: {host}
  subsets:
  - {{name: v1, labels: {{version: v1}}}}
  - {{name: v2, labels: {{version: v2}}}}
"
            );
        let routes = header("VirtualService")
            + &format!(
                "  hosts: [{host}]
{gateways}  http:
  - timeout: 5s
    route:
    - {{destination: {{host: {host}, subset: v1}}, weight: 90}}
    - {{destination: {{host: {host}, subset: v2}}, weight: 10}}
"
            );
        [entry, rule, routes].join("---\n")
    }

    fn sidecar(&self, namespace: usize) -> String {
        let others = (1..=NEIGHBOURS).map(|next| (namespace + next) % self.namespaces);
        let hosts: String = others.map(|other| format!(", 'ns-{other}/*'")).collect();
        format!(
            "apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {{name: default, namespace: ns-{namespace}}}
spec:
  egress:
  - hosts: ['./*'{hosts}]
"
        )
    }

    /// The encoded node of a proxy.
    pub fn node(&self, proxy: usize) -> Vec<u8> {
        let address = format!("10.200.{}.{}", proxy / 250, proxy % 250 + 1);
        let (kind, namespace, label) = match self.shape {
            Shape::Routers => ("router", 0, "edge".to_owned()),
            Shape::Sidecars | Shape::Scoped | Shape::ShortNames => {
                ("sidecar", proxy % self.namespaces, format!("p{proxy}"))
            }
        };
        let namespace = format!("ns-{namespace}");
        let id = format!("{kind}~{address}~p{proxy}.{namespace}~{namespace}.svc.cluster.local");
        wire::node(&id, &namespace, &[("app", &label)])
    }

    /// The name of the route table that proxies ask for.
    pub fn route_table(&self) -> &'static str {
        match self.shape {
            Shape::Routers => "http.8080",
            Shape::Sidecars | Shape::Scoped | Shape::ShortNames => "80",
        }
    }

    /// Whether a proxy sees the service that is edited.
    pub fn sees_edits(&self, proxy: usize) -> bool {
        match self.shape {
            Shape::Sidecars | Shape::Routers | Shape::ShortNames => true,
            Shape::Scoped => {
                let edited = self.edited() % self.namespaces;
                let own = proxy % self.namespaces;
                (edited + self.namespaces - own) % self.namespaces <= NEIGHBOURS
            }
        }
    }

    /// The service that is edited: not the first, and one that has routes.
    fn edited(&self) -> usize {
        if self.services > ROUTED { ROUTED } else { 0 }
    }

    /// Does an edit as an editor does: the new text replaces the file at once.
    pub fn edit(&self, dir: &Path, edit: Edit) -> io::Result<()> {
        let path = self.path(dir, self.edited());
        let text = fs::read_to_string(&path)?;
        let (before, after) = edit.texts();
        if !text.contains(before) {
            return Err(io::Error::other(format!("{} lacks '{before}'", path.display())));
        }
        let new = dir.join(".edited");
        fs::write(&new, text.replacen(before, after, 1))?;
        fs::rename(new, path)
    }
}

const GATEWAY: &str = "\
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: ns-0}
spec:
  selector: {app: edge}
  servers:
  - port: {number: 8080, name: http, protocol: HTTP}
    hosts: ['*']
";

/// A change of the edited service's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// A share of a split.
    Weight,
    /// The address of an endpoint.
    Endpoint,
    /// The timeout of a route.
    Timeout,
    /// A comment.
    Comment,
    /// The same text again.
    NoOpSave,
}

impl Edit {
    /// In the order in which they are done.
    pub const ALL: [Edit; 5] =
        [Edit::Weight, Edit::Endpoint, Edit::Timeout, Edit::Comment, Edit::NoOpSave];

    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Edit::Weight => "weight",
            Edit::Endpoint => "endpoint",
            Edit::Timeout => "timeout",
            Edit::Comment => "comment",
            Edit::NoOpSave => "no-op save",
        }
    }

    /// What is in the file, and what replaces it.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Edit::Weight => ("weight: 90", "weight: 77"),
            Edit::Endpoint => ("- {address: 10.100.", "- {address: 10.222."),
            Edit::Timeout => ("timeout: 5s", "timeout: 7s"),
            Edit::Comment => ("weight: 10}", "weight: 10}  # a note"),
            Edit::NoOpSave => ("spec:", "spec:"),
        }
    }
}
