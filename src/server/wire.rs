//! Responses as gRPC messages without a copy per client.
//!
//! A gRPC message is five bytes of prefix and a protobuf message, and the fields of a protobuf
//! message may come in any order. So a response is a small head of its own (prefix, version, type,
//! nonce, removed names) followed by the encoded resources: a chain of shared [`Bytes`] that goes
//! down to the socket as it is. A thousand clients that read slowly share one copy.
//!
//! Few clients are sent exactly the same: each sidecar has a cluster or two of its own among a
//! thousand that all have. So resources are encoded in runs, and where a run ends is told from the
//! content of its last resource. Around what differs runs differ; all others are the same for
//! everybody.

use crate::ads::{Protocol, Response};
use crate::xds::{Digest, Resource, TypeUrl, Version};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Resources up to this size are joined into runs; each piece becomes at least one frame.
const SMALL: usize = 16 * 1024;
/// The size at which a run ends in any case.
const LONG: usize = 64 * 1024;
/// One of so many resources ends a run.
const RUN: u64 = 64;
/// Below this size a run is not worth looking for.
const WORTH_SHARING: usize = 8 * 1024;

/// Who sends, as Envoy shows it.
const IDENTIFIER: &str = "pilotfish";

/// A message ready to be sent.
#[derive(Debug)]
pub(super) struct Message {
    pieces: std::vec::IntoIter<Bytes>,
    len: usize,
}

/// A message longer than gRPC can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Finds runs that are being sent to others.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    runs: Mutex<Runs>,
}

/// The runs that are being sent.
#[derive(Debug, Default)]
struct Runs {
    known: BTreeMap<(TypeUrl, bool, Version), Weak<[u8]>>,
    /// How many were still being sent when that was last looked at.
    alive: usize,
}

/// An encoded run, for as long as somebody sends it.
struct Shared(Arc<[u8]>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Message {
    /// The next piece of it.
    pub(super) fn next_piece(&mut self) -> Option<Bytes> {
        self.pieces.next()
    }

    /// Its length on the wire.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Encoder {
    /// Encodes a response.
    pub(super) fn encode(
        &self,
        protocol: Protocol,
        response: &Response,
    ) -> Result<Message, TooLong> {
        // The place of the head, whose content depends on the length of the others.
        let mut pieces = vec![Bytes::new()];
        for run in runs(&response.resources) {
            pieces.push(self.run(protocol, response.type_url, run));
            pieces.extend(run.last().filter(|r| is_large(r)).map(|r| r.body.clone()));
        }
        let len = pieces.iter().map(Bytes::len).sum();
        let head = head(protocol, response, len)?;
        let len = len + head.len();
        pieces[0] = head;
        Ok(Message { pieces: pieces.into_iter(), len })
    }

    /// A run, but for the body of its last resource if that is large.
    fn run(&self, protocol: Protocol, type_url: TypeUrl, run: &[Resource]) -> Bytes {
        let joined = run.iter().filter(|r| !is_large(r)).map(|r| r.body.len()).sum::<usize>();
        if joined < WORTH_SHARING {
            return encoded(protocol, type_url, run).freeze();
        }
        let content: Digest = run.iter().map(Resource::digest).sum();
        let key = (type_url, protocol == Protocol::Delta, content.into());
        // Nothing can panic between two halves of a change. Whoever comes first encodes while
        // others wait, instead of each doing the same work.
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = runs.known.get(&key).and_then(Weak::upgrade);
        let shared = known.unwrap_or_else(|| {
            let shared: Arc<[u8]> = Arc::from(&encoded(protocol, type_url, run)[..]);
            runs.remember(key, &shared);
            shared
        });
        Bytes::from_owner(Shared(shared))
    }
}

impl Runs {
    fn remember(&mut self, key: (TypeUrl, bool, Version), run: &Arc<[u8]>) {
        // Not each time, or a thousand clients would look at a thousand runs.
        if self.known.len() >= 2 * self.alive + 64 {
            self.known.retain(|_, run| run.strong_count() > 0);
            self.alive = self.known.len();
        }
        self.known.insert(key, Arc::downgrade(run));
    }
}

/// Cuts resources into runs.
fn runs(resources: &[Resource]) -> impl Iterator<Item = &[Resource]> {
    let mut len = 0;
    resources.chunk_by(move |resource, _| {
        len += resource.body.len();
        let ends = len >= LONG || is_large(resource) || resource.digest().is_one_of(RUN);
        if ends {
            len = 0;
        }
        !ends
    })
}

fn is_large(resource: &Resource) -> bool {
    resource.body.len() > SMALL
}

fn encoded(protocol: Protocol, type_url: TypeUrl, run: &[Resource]) -> BytesMut {
    let mut out = BytesMut::new();
    for resource in run {
        match protocol {
            Protocol::StateOfTheWorld => state_resource(&mut out, type_url, resource),
            Protocol::Delta => delta_resource(&mut out, type_url, resource),
        }
        if !is_large(resource) {
            out.put_slice(&resource.body);
        }
    }
    out
}

// The resource's body is the last thing in every form, so that it can stay where it is.

/// `DiscoveryResponse.resources`: `Any { type_url = 1, value = 2 }`, up to the body.
fn state_resource(out: &mut BytesMut, type_url: TypeUrl, resource: &Resource) {
    put_len(out, 2, any_len(type_url, resource));
    put_any(out, type_url, resource);
}

/// `DeltaDiscoveryResponse.resources`: `Resource { version = 1, resource = 2, name = 3 }`, up to
/// the body.
fn delta_resource(out: &mut BytesMut, type_url: TypeUrl, resource: &Resource) {
    let version = resource.version.to_string();
    let any = any_len(type_url, resource);
    let len = field_len(version.len()) + field_len(resource.name.len()) + field_len(any);
    put_len(out, 2, len);
    put_text(out, 1, &version);
    put_text(out, 3, &resource.name);
    put_len(out, 2, any);
    put_any(out, type_url, resource);
}

fn any_len(type_url: TypeUrl, resource: &Resource) -> usize {
    field_len(type_url.as_str().len()) + field_len(resource.body.len())
}

fn put_any(out: &mut BytesMut, type_url: TypeUrl, resource: &Resource) {
    put_text(out, 1, type_url.as_str());
    put_len(out, 2, resource.body.len());
}

/// Prefix, version (1), type (4), nonce (5), removed names (delta, 6), and who sends (6 or 7).
fn head(protocol: Protocol, response: &Response, chain: usize) -> Result<Bytes, TooLong> {
    let mut fields = BytesMut::new();
    put_text(&mut fields, 1, &response.version.to_string());
    put_text(&mut fields, 4, response.type_url.as_str());
    put_text(&mut fields, 5, &response.nonce);
    let control_plane = match protocol {
        Protocol::StateOfTheWorld => 6,
        Protocol::Delta => {
            for name in &response.removed {
                put_text(&mut fields, 6, name);
            }
            7
        }
    };
    put_len(&mut fields, control_plane, field_len(IDENTIFIER.len()));
    put_text(&mut fields, 1, IDENTIFIER);
    let len = u32::try_from(fields.len() + chain).map_err(|_| TooLong)?;
    let mut head = BytesMut::with_capacity(5 + fields.len());
    head.put_u8(0);
    head.put_u32(len);
    head.put_slice(&fields);
    Ok(head.freeze())
}

// All field numbers are below 16, so a tag is one byte; all fields are length-delimited.
fn put_len(out: &mut BytesMut, field: u8, len: usize) {
    out.put_u8(field << 3 | 2);
    prost::encoding::encode_varint(len as u64, out);
}

fn put_text(out: &mut BytesMut, field: u8, text: &str) {
    put_len(out, field, text.len());
    out.put_slice(text.as_bytes());
}

/// The length of a length-delimited field with this much in it.
fn field_len(len: usize) -> usize {
    1 + prost::encoding::encoded_len_varint(len as u64) + len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::pb::Message as _;
    use crate::xds::pb::discovery::{DeltaDiscoveryResponse, DiscoveryResponse};

    fn response(bodies: &[usize], removed: &[&str]) -> Response {
        Response {
            type_url: TypeUrl::Cluster,
            version: Version::of(b"v"),
            nonce: "7".into(),
            resources: bodies
                .iter()
                .enumerate()
                .map(|(i, len)| Resource::new(format!("r{i}"), vec![b'x'; *len]))
                .collect(),
            removed: removed.iter().map(|name| Arc::from(*name)).collect(),
        }
    }

    fn pieces(mut message: Message) -> Vec<Bytes> {
        std::iter::from_fn(|| message.next_piece()).collect()
    }

    /// The protobuf message behind the gRPC prefix.
    fn payload(message: Message) -> Vec<u8> {
        let len = message.len();
        let bytes: Vec<u8> = pieces(message).concat();
        assert_eq!(bytes.len(), len);
        assert_eq!(bytes[0], 0, "not compressed");
        let said = u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes"));
        assert_eq!(said as usize, bytes.len() - 5);
        bytes[5..].to_vec()
    }

    const SIZES: &[usize] = &[0, 1, 127, 128, 5_000, 20_000, 300, 70_000, 16_384];

    #[test]
    fn a_state_response_decodes_to_what_was_meant() {
        let response = response(SIZES, &[]);
        let message =
            Encoder::default().encode(Protocol::StateOfTheWorld, &response).expect("short");
        let decoded = DiscoveryResponse::decode(&*payload(message)).expect("valid");
        assert_eq!(decoded.version_info, response.version.to_string());
        assert_eq!(decoded.type_url, TypeUrl::Cluster.as_str());
        assert_eq!(decoded.nonce, "7");
        assert_eq!(decoded.control_plane.expect("set").identifier, IDENTIFIER);
        let sent: Vec<_> =
            decoded.resources.iter().map(|any| (&any.type_url, &any.value)).collect();
        let cluster = TypeUrl::Cluster.as_str().to_owned();
        let bodies: Vec<Vec<u8>> = response.resources.iter().map(|r| r.body.to_vec()).collect();
        assert_eq!(sent, bodies.iter().map(|body| (&cluster, body)).collect::<Vec<_>>());
    }

    #[test]
    fn a_delta_response_decodes_to_what_was_meant() {
        let response = response(SIZES, &["gone", "lost"]);
        let message = Encoder::default().encode(Protocol::Delta, &response).expect("short");
        let decoded = DeltaDiscoveryResponse::decode(&*payload(message)).expect("valid");
        assert_eq!(decoded.removed_resources, ["gone", "lost"]);
        assert_eq!(decoded.nonce, "7");
        assert_eq!(decoded.control_plane.expect("set").identifier, IDENTIFIER);
        for (sent, meant) in decoded.resources.iter().zip(&response.resources) {
            assert_eq!(sent.name, &*meant.name);
            assert_eq!(sent.version, meant.version.to_string());
            let any = sent.resource.as_ref().expect("set");
            assert_eq!(any.type_url, TypeUrl::Cluster.as_str());
            assert_eq!(any.value, meant.body);
        }
        assert_eq!(decoded.resources.len(), SIZES.len());
    }

    fn starts(message: Message) -> Vec<(*const u8, usize)> {
        pieces(message)[1..].iter().map(|piece| (piece.as_ptr(), piece.len())).collect()
    }

    #[test]
    fn two_clients_that_are_sent_the_same_share_the_bytes() {
        let encoder = Encoder::default();
        let first = response(&[10_000, 20_000, 9_000], &[]);
        let second = Response { nonce: "8".into(), ..first.clone() };
        let encode = |protocol, response| encoder.encode(protocol, response).expect("short");
        let kept = encode(Protocol::Delta, &first);
        let other = starts(encode(Protocol::StateOfTheWorld, &first));
        let again = starts(encode(Protocol::Delta, &second));
        let kept = starts(kept);
        assert_eq!(kept, again);
        assert_ne!(kept[0], other[0]);
        assert_eq!(kept[1], other[1], "the body of the large one");
    }

    #[test]
    fn clients_with_a_resource_of_their_own_share_the_others() {
        let encoder = Encoder::default();
        let common = response(&[300; 1_200], &[]);
        let of_client = |name: &str| {
            let mut response = common.clone();
            response.resources.insert(0, Resource::new(name, vec![b'x'; 300]));
            encoder.encode(Protocol::Delta, &response).expect("short")
        };
        let messages = ["0a", "0b"].map(of_client).map(pieces);
        let [first, second] =
            messages.map(|pieces| pieces.iter().map(|p| (p.as_ptr(), p.len())).collect::<Vec<_>>());
        let shared: usize = first.iter().filter(|p| second.contains(p)).map(|p| p.1).sum();
        let all: usize = first.iter().map(|p| p.1).sum();
        assert!(shared * 10 > all * 8, "{shared} of {all}");
    }

    #[test]
    fn a_large_resource_is_not_copied_at_all() {
        let response = response(&[100_000], &[]);
        let message = Encoder::default().encode(Protocol::Delta, &response).expect("short");
        let body = &response.resources[0].body;
        assert!(pieces(message).iter().any(|piece| piece.as_ptr() == body.as_ptr()));
    }

    #[test]
    fn small_resources_are_joined() {
        let response = response(&[300; 1_000], &[]);
        let message = Encoder::default().encode(Protocol::Delta, &response).expect("short");
        assert!(pieces(message).len() < 40);
    }

    #[test]
    fn what_nobody_sends_any_more_is_forgotten() {
        let encoder = Encoder::default();
        for i in 0..1_000 {
            let message = encoder.encode(Protocol::Delta, &response(&[10_000 + i], &[]));
            drop(message);
        }
        assert!(encoder.runs.lock().expect("not poisoned").known.len() <= 64);
    }
}
