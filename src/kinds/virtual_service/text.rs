//! What texts of a VirtualService mean by themselves: its rules and its lowering read them alike.

use crate::kinds::rules;
use base64::Engine;
use ipnet::IpNet;
use std::net::IpAddr;

/// The names that JWT claims are matched by, among the headers.
const CLAIMS: &str = "@request.auth.claims";

/// Whether a header condition is about a claim of the request's token.
pub(super) fn is_claim(header: &str) -> bool {
    header.get(..CLAIMS.len()).is_some_and(|start| start.eq_ignore_ascii_case(CLAIMS))
}

/// Bytes as protobuf's JSON form has them: base64, with either alphabet, padded or not.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let text = text.replace('-', "+").replace('_', "/");
    GeneralPurpose::new(&base64::alphabet::STANDARD, config).decode(text).ok()
}

/// Istio's names between clusters: `outbound_.PORT_.SUBSET_.HOST`.
pub(super) fn is_outbound_sni(host: &str) -> bool {
    let parts: Vec<&str> = host.splitn(4, "_.").collect();
    match parts.as_slice() {
        ["outbound", port, subset, host] => {
            port.parse::<u16>().is_ok_and(|port| port > 0)
                && (subset.is_empty() || rules::is_dns_label(subset))
                && rules::fqdn_problem(host).is_none()
        }
        _ => false,
    }
}

/// Reads a network or a single address.
pub(super) fn subnet(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// The number of a gRPC status, by its name.
pub(super) fn grpc_status(name: &str) -> Option<u32> {
    let at = GRPC_STATUSES.iter().position(|status| *status == name)?;
    u32::try_from(at).ok()
}

/// gRPC's statuses by number.
pub(super) const GRPC_STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
