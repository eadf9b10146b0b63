//! The envelope of xDS: requests written, and responses read as they arrive, without a protobuf
//! library and without looking into resources. A simulated proxy that decoded what it gets would
//! cost more than the server that it measures.

use pilotfish::xds::TypeUrl;

/// Bytes of a resource that are kept until its name was found. The name of an Any's message is its
/// first field in all types of Envoy's that are asked for by name.
const KEPT: usize = 512;
/// Bytes before a gRPC message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// The two forms of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Only what changed is sent.
    Delta,
    /// All that was asked for is sent.
    Sotw,
}

impl Protocol {
    /// The path of the gRPC method.
    pub fn path(self) -> &'static str {
        match self {
            Protocol::Delta => {
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
            }
            Protocol::Sotw => {
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
            }
        }
    }

    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Delta => "delta",
            Protocol::Sotw => "state of the world",
        }
    }
}

/// Protobuf under construction.
#[derive(Debug, Default, Clone)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// A field that has a length: text, bytes or a message.
    pub fn field(mut self, number: u8, value: impl AsRef<[u8]>) -> Writer {
        let value = value.as_ref();
        // Wire type 2; all field numbers here are below 16.
        self.0.push(number << 3 | 2);
        self.varint(value.len());
        self.0.extend_from_slice(value);
        self
    }

    /// Fields that are encoded already.
    pub fn append(mut self, fields: &[u8]) -> Writer {
        self.0.extend_from_slice(fields);
        self
    }

    fn varint(&mut self, mut value: usize) {
        while value > 0x7f {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// The message with its gRPC prefix.
    pub fn framed(self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("requests are small");
        let mut framed = Vec::with_capacity(PREFIX + self.0.len());
        framed.push(0);
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(&self.0);
        framed
    }
}

/// A `Node` with the metadata that Istio's agents send.
pub fn node(id: &str, namespace: &str, labels: &[(&str, &str)]) -> Vec<u8> {
    let text = |value: &str| Writer::default().field(3, value).0;
    let entry = |key: &str, value: Vec<u8>| Writer::default().field(1, key).field(2, value).0;
    let labels = labels
        .iter()
        .fold(Writer::default(), |fields, (key, value)| fields.field(1, entry(key, text(value))));
    let labels = Writer::default().field(5, labels.0).0;
    let metadata = Writer::default()
        .field(1, entry("NAMESPACE", text(namespace)))
        .field(1, entry("LABELS", labels));
    Writer::default().field(1, id).field(2, "fleet").field(3, metadata.0).field(6, "envoy").0
}

/// A request of either protocol. Names that are asked for are the same field in both, so they are
/// passed as encoded by [`name_field`].
#[derive(Debug, Default)]
pub struct Request<'a> {
    /// Who asks; only in the first request of a stream.
    pub node: Option<&'a [u8]>,
    /// The type that is asked for.
    pub type_url: &'a str,
    /// Encoded names: those that are new (delta), or all (state of the world).
    pub names: &'a [u8],
    /// The version that is acknowledged; state of the world only.
    pub version: &'a str,
    /// The response that is acknowledged.
    pub nonce: &'a str,
}

/// A name that is asked for, encoded.
pub fn name_field(name: &str) -> Vec<u8> {
    Writer::default().field(3, name).0
}

impl Request<'_> {
    /// The gRPC message.
    pub fn encode(&self, protocol: Protocol) -> Vec<u8> {
        let (node, type_url, nonce) = match protocol {
            Protocol::Delta => (1, 2, 6),
            Protocol::Sotw => (2, 4, 5),
        };
        let mut request = Writer::default();
        if let Some(value) = self.node {
            request = request.field(node, value);
        }
        if protocol == Protocol::Sotw && !self.version.is_empty() {
            request = request.field(1, self.version);
        }
        request = request.field(type_url, self.type_url).append(self.names);
        if !self.nonce.is_empty() {
            request = request.field(nonce, self.nonce);
        }
        request.framed()
    }
}

/// What a response says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Its type.
    pub type_url: String,
    /// What an acknowledgement names.
    pub nonce: String,
    /// Its version.
    pub version: String,
    /// Names of clusters; of other types nothing is kept.
    pub clusters: Vec<String>,
    /// Bytes of the message.
    pub size: usize,
}

/// Where a reader is in its message.
#[derive(Debug)]
enum Step {
    Prefix,
    Tag,
    Number,
    Length { field: usize },
    Body { field: usize, left: usize },
}

/// Reads the messages of one stream, however they are cut into chunks.
#[derive(Debug)]
pub struct Reader {
    protocol: Protocol,
    step: Step,
    /// Bytes of the message that are still to come.
    left: usize,
    varint: (usize, u32),
    kept: Vec<u8>,
    response: Response,
}

impl Reader {
    /// At the beginning of a stream.
    pub fn new(protocol: Protocol) -> Reader {
        let response = Response::default();
        Reader { protocol, step: Step::Prefix, left: 0, varint: (0, 0), kept: Vec::new(), response }
    }

    /// Takes a chunk, and gives the responses that it completes.
    pub fn feed(&mut self, mut chunk: &[u8]) -> Result<Vec<Response>, String> {
        let mut responses = Vec::new();
        while !chunk.is_empty() {
            let taken = self.advance(chunk)?;
            chunk = &chunk[taken..];
            if self.left == 0 && matches!(self.step, Step::Tag) {
                self.step = Step::Prefix;
                responses.push(std::mem::take(&mut self.response));
            }
        }
        Ok(responses)
    }

    /// Takes as much of a chunk as belongs to one step, and says how much that was.
    fn advance(&mut self, chunk: &[u8]) -> Result<usize, String> {
        if let Step::Prefix = self.step {
            let taken = chunk.len().min(PREFIX - self.kept.len());
            self.kept.extend_from_slice(&chunk[..taken]);
            if let [compressed, length @ ..] = &self.kept[..]
                && let Ok(length) = <[u8; 4]>::try_from(length)
            {
                if *compressed != 0 {
                    return Err("a compressed message, which nobody asked for".to_owned());
                }
                self.left = u32::from_be_bytes(length) as usize;
                self.response.size = self.left;
                self.kept.clear();
                self.step = Step::Tag;
            }
            return Ok(taken);
        }
        if let Step::Body { field, left } = self.step {
            let taken = chunk.len().min(left);
            let kept = taken.min(KEPT.saturating_sub(self.kept.len()));
            self.kept.extend_from_slice(&chunk[..kept]);
            self.left -= taken;
            self.body(field, left - taken);
            return Ok(taken);
        }
        self.left = self.left.checked_sub(1).ok_or("a message that ends within a field")?;
        let (value, shift) = self.varint;
        let value = value | usize::from(chunk[0] & 0x7f) << shift;
        self.varint = (value, shift + 7);
        if chunk[0] & 0x80 == 0 {
            self.varint = (0, 0);
            self.number(value)?;
        }
        Ok(1)
    }

    /// A varint is complete.
    fn number(&mut self, value: usize) -> Result<(), String> {
        match self.step {
            Step::Tag if value & 7 == 2 => self.step = Step::Length { field: value >> 3 },
            Step::Tag if value & 7 == 0 => self.step = Step::Number,
            Step::Tag => return Err(format!("a field of wire type {}", value & 7)),
            Step::Length { .. } if value > self.left => {
                return Err(format!("a field of {value} bytes where {} are left", self.left));
            }
            Step::Length { field } => self.body(field, value),
            Step::Prefix | Step::Number | Step::Body { .. } => self.step = Step::Tag,
        }
        Ok(())
    }

    /// So much of a field's body is left.
    fn body(&mut self, field: usize, left: usize) {
        if left > 0 {
            self.step = Step::Body { field, left };
            return;
        }
        let kept = std::mem::take(&mut self.kept);
        let text = || String::from_utf8_lossy(&kept).into_owned();
        match field {
            1 => self.response.version = text(),
            2 => self.response.clusters.extend(cluster_name(self.protocol, &kept)),
            4 => self.response.type_url = text(),
            5 => self.response.nonce = text(),
            _ => {}
        }
        self.kept = kept;
        self.kept.clear();
        self.step = Step::Tag;
    }
}

/// The name of a cluster, from the first bytes of an Any, or of the `Resource` that holds one.
fn cluster_name(protocol: Protocol, resource: &[u8]) -> Option<String> {
    let any = match protocol {
        Protocol::Delta => find(resource, 2)?,
        Protocol::Sotw => resource,
    };
    if find(any, 1)? != TypeUrl::Cluster.as_str().as_bytes() {
        return None;
    }
    let name = find(find(any, 2)?, 1)?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The first field of that number in a message of fields with a length, as far as it is there.
fn find(mut message: &[u8], number: u8) -> Option<&[u8]> {
    loop {
        let (tag, rest) = message.split_first()?;
        let (mut length, mut shift, mut rest) = (0, 0, rest);
        while let Some((byte, after)) = rest.split_first() {
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            rest = after;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let body = &rest[..length.min(rest.len())];
        if *tag == number << 3 | 2 {
            return Some(body);
        }
        message = rest.get(length..)?;
    }
}
