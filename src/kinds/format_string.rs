//! Envoy's format strings in header values. Envoy refuses a whole route configuration for one
//! unknown operator, so they are checked before anything is served.

/// Why a format string is wrong, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: String,
}

/// Checks the `%` sequences of a header value.
pub fn check(value: &str) -> Result<(), Problem> {
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        rest = operator(rest)?;
    }
    Ok(())
}

/// Reads an operator behind its first `%` and gives what follows it.
fn operator(text: &str) -> Result<&str, Problem> {
    let end = text
        .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    if name.is_empty() {
        return Err(bare());
    }
    let (mut has_arguments, mut has_length) = (false, false);
    if let Some(arguments) = rest.strip_prefix('(') {
        let Some((inside, after)) = arguments.split_once(')') else { return Err(bare()) };
        has_arguments = !inside.is_empty();
        rest = after;
    }
    if let Some(length) = rest.strip_prefix(':') {
        rest = length.trim_start_matches(|c: char| c.is_ascii_digit());
        has_length = true;
        if rest.len() == length.len() {
            return Err(bare());
        }
    }
    let Some(rest) = rest.strip_prefix('%') else { return Err(bare()) };
    let problem = |message: String, help: &str| Err(Problem { message, help: help.to_owned() });
    if OPERATORS.binary_search(&name).is_err() {
        return problem(
            format!("Envoy knows no operator `%{name}%`"),
            "write `%%` for a percent sign",
        );
    }
    let needs = WITH_ARGUMENTS.contains(&name);
    if needs && !has_arguments {
        return problem(
            format!("the operator `%{name}%` needs arguments"),
            "write them in parentheses, as in `%REQ(x-request-id)%`",
        );
    }
    if has_arguments && !needs && !PERHAPS_WITH_ARGUMENTS.contains(&name) {
        return problem(
            format!("the operator `%{name}%` takes no arguments"),
            "remove the parentheses",
        );
    }
    if has_length && !WITH_LENGTH.contains(&name) {
        return problem(
            format!("the operator `%{name}%` takes no length"),
            "remove the colon and the number",
        );
    }
    Ok(rest)
}

fn bare() -> Problem {
    Problem {
        message: "the `%` starts no operator that Envoy can read".to_owned(),
        help: "write `%%` for a percent sign, `%NAME%` or `%NAME(ARGUMENTS)%` for an operator"
            .to_owned(),
    }
}

/// Operators that Envoy 1.40 refuses without arguments.
const WITH_ARGUMENTS: [&str; 18] = [
    "CEL",
    "CLUSTER_METADATA",
    "COALESCE",
    "COMMON_DURATION",
    "DYNAMIC_METADATA",
    "ENVIRONMENT",
    "FILTER_STATE",
    "METADATA",
    "PER_REQUEST_STATE",
    "QUERY_PARAM",
    "REQ",
    "REQUEST_HEADER",
    "RESP",
    "RESPONSE_HEADER",
    "RESPONSE_TRAILER",
    "TRAILER",
    "UPSTREAM_FILTER_STATE",
    "UPSTREAM_METADATA",
];

/// Operators that take arguments or none.
const PERHAPS_WITH_ARGUMENTS: [&str; 14] = [
    "DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_PEER_CERT_V_END",
    "DOWNSTREAM_PEER_CERT_V_START",
    "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
    "EMIT_TIME",
    "EMIT_TIME_LOCAL",
    "PATH",
    "QUERY_PARAMS",
    "RESPONSE_CODE_DETAILS",
    "START_TIME",
    "START_TIME_LOCAL",
    "UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
];

/// Operators that take a length (`:10`).
const WITH_LENGTH: [&str; 16] = [
    "CEL",
    "COALESCE",
    "DYNAMIC_METADATA",
    "ENVIRONMENT",
    "FILTER_STATE",
    "METADATA",
    "PATH",
    "QUERY_PARAM",
    "QUERY_PARAMS",
    "REQ",
    "REQUEST_HEADER",
    "RESP",
    "RESPONSE_HEADER",
    "RESPONSE_TRAILER",
    "TRAILER",
    "UPSTREAM_FILTER_STATE",
];

/// What stock Envoy 1.40 was seen to load, sorted.
const OPERATORS: [&str; 162] = [
    "ACCESS_LOG_TYPE",
    "BYTES_RECEIVED",
    "BYTES_RETRANSMITTED",
    "BYTES_SENT",
    "CEL",
    "CLUSTER_METADATA",
    "COALESCE",
    "COMMON_DURATION",
    "CONNECTION_ID",
    "CONNECTION_TERMINATION_DETAILS",
    "CUSTOM_FLAGS",
    "DOWNSTREAM_CX_RTT",
    "DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED",
    "DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT",
    "DOWNSTREAM_DETECTED_CLOSE_TYPE",
    "DOWNSTREAM_DIRECT_LOCAL_ADDRESS",
    "DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID",
    "DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_DIRECT_LOCAL_PORT",
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS",
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_DIRECT_REMOTE_PORT",
    "DOWNSTREAM_HANDSHAKE_DURATION",
    "DOWNSTREAM_HEADER_BYTES_RECEIVED",
    "DOWNSTREAM_HEADER_BYTES_SENT",
    "DOWNSTREAM_LOCAL_ADDRESS",
    "DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID",
    "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_LOCAL_CLOSE_REASON",
    "DOWNSTREAM_LOCAL_DNS_SAN",
    "DOWNSTREAM_LOCAL_EMAIL_SAN",
    "DOWNSTREAM_LOCAL_IP_SAN",
    "DOWNSTREAM_LOCAL_OTHERNAME_SAN",
    "DOWNSTREAM_LOCAL_PORT",
    "DOWNSTREAM_LOCAL_SUBJECT",
    "DOWNSTREAM_LOCAL_URI_SAN",
    "DOWNSTREAM_PEER_CERT",
    "DOWNSTREAM_PEER_CERT_V_END",
    "DOWNSTREAM_PEER_CERT_V_START",
    "DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1",
    "DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256",
    "DOWNSTREAM_PEER_CHAIN_SERIALS",
    "DOWNSTREAM_PEER_DNS_SAN",
    "DOWNSTREAM_PEER_EMAIL_SAN",
    "DOWNSTREAM_PEER_FINGERPRINT_1",
    "DOWNSTREAM_PEER_FINGERPRINT_256",
    "DOWNSTREAM_PEER_IP_SAN",
    "DOWNSTREAM_PEER_ISSUER",
    "DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256",
    "DOWNSTREAM_PEER_ISSUER_SERIAL",
    "DOWNSTREAM_PEER_OTHERNAME_SAN",
    "DOWNSTREAM_PEER_SERIAL",
    "DOWNSTREAM_PEER_SUBJECT",
    "DOWNSTREAM_PEER_URI_SAN",
    "DOWNSTREAM_REMOTE_ADDRESS",
    "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_REMOTE_PORT",
    "DOWNSTREAM_TLS_CIPHER",
    "DOWNSTREAM_TLS_GROUP",
    "DOWNSTREAM_TLS_SESSION_ID",
    "DOWNSTREAM_TLS_VERSION",
    "DOWNSTREAM_TRANSPORT_FAILURE_REASON",
    "DOWNSTREAM_WIRE_BYTES_RECEIVED",
    "DOWNSTREAM_WIRE_BYTES_SENT",
    "DURATION",
    "DYNAMIC_METADATA",
    "EMIT_TIME",
    "EMIT_TIME_LOCAL",
    "ENVIRONMENT",
    "FILTER_CHAIN_NAME",
    "FILTER_STATE",
    "GRPC_STATUS",
    "GRPC_STATUS_NUMBER",
    "HOSTNAME",
    "LISTENER_NAME",
    "LOCAL_REPLY_BODY",
    "METADATA",
    "PACKETS_RETRANSMITTED",
    "PATH",
    "PER_REQUEST_STATE",
    "PROTOCOL",
    "QUERY_PARAM",
    "QUERY_PARAMS",
    "REQ",
    "REQUESTED_SERVER_NAME",
    "REQUEST_DURATION",
    "REQUEST_HEADER",
    "REQUEST_HEADERS_BYTES",
    "REQUEST_TX_DURATION",
    "RESP",
    "RESPONSE_CODE",
    "RESPONSE_CODE_DETAILS",
    "RESPONSE_DURATION",
    "RESPONSE_FLAGS",
    "RESPONSE_FLAGS_LONG",
    "RESPONSE_HEADER",
    "RESPONSE_HEADERS_BYTES",
    "RESPONSE_TRAILER",
    "RESPONSE_TRAILERS_BYTES",
    "RESPONSE_TX_DURATION",
    "ROUNDTRIP_DURATION",
    "ROUTE_NAME",
    "ROUTE_RESOLUTION_COUNT",
    "ROUTE_RESOLUTION_TIME_US",
    "SPAN_ID",
    "START_TIME",
    "START_TIME_LOCAL",
    "STREAM_ID",
    "TLS_JA3_FINGERPRINT",
    "TLS_JA4_FINGERPRINT",
    "TRACE_ID",
    "TRAILER",
    "UNIQUE_ID",
    "UPSTREAM_CLUSTER",
    "UPSTREAM_CLUSTER_RAW",
    "UPSTREAM_CONNECTION_ID",
    "UPSTREAM_CONNECTION_IDS_ATTEMPTED",
    "UPSTREAM_CONNECTION_POOL_READY_DURATION",
    "UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED",
    "UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT",
    "UPSTREAM_DETECTED_CLOSE_TYPE",
    "UPSTREAM_FILTER_STATE",
    "UPSTREAM_HEADER_BYTES_RECEIVED",
    "UPSTREAM_HEADER_BYTES_SENT",
    "UPSTREAM_HOST",
    "UPSTREAM_HOSTS_ATTEMPTED",
    "UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT",
    "UPSTREAM_HOST_NAME",
    "UPSTREAM_HOST_NAMES_ATTEMPTED",
    "UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT",
    "UPSTREAM_HOST_NAME_WITHOUT_PORT",
    "UPSTREAM_LOCAL_ADDRESS",
    "UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
    "UPSTREAM_LOCAL_CLOSE_REASON",
    "UPSTREAM_LOCAL_DNS_SAN",
    "UPSTREAM_LOCAL_IP_SAN",
    "UPSTREAM_LOCAL_PORT",
    "UPSTREAM_LOCAL_URI_SAN",
    "UPSTREAM_METADATA",
    "UPSTREAM_PEER_CERT",
    "UPSTREAM_PEER_CERT_V_END",
    "UPSTREAM_PEER_CERT_V_START",
    "UPSTREAM_PEER_DNS_SAN",
    "UPSTREAM_PEER_IP_SAN",
    "UPSTREAM_PEER_ISSUER",
    "UPSTREAM_PEER_SUBJECT",
    "UPSTREAM_PEER_URI_SAN",
    "UPSTREAM_PROTOCOL",
    "UPSTREAM_REMOTE_ADDRESS",
    "UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID",
    "UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
    "UPSTREAM_REMOTE_PORT",
    "UPSTREAM_REQUEST_ATTEMPT_COUNT",
    "UPSTREAM_SERVER_NAME",
    "UPSTREAM_TLS_CIPHER",
    "UPSTREAM_TLS_GROUP",
    "UPSTREAM_TLS_SESSION_ID",
    "UPSTREAM_TLS_VERSION",
    "UPSTREAM_TRANSPORT_FAILURE_REASON",
    "UPSTREAM_WIRE_BYTES_RECEIVED",
    "UPSTREAM_WIRE_BYTES_SENT",
    "VIRTUAL_CLUSTER_NAME",
];

#[cfg(test)]
mod tests {
    use super::{OPERATORS, check};

    #[test]
    fn the_operators_are_sorted() {
        assert!(OPERATORS.is_sorted());
    }

    #[test]
    fn operators_and_doubled_signs_pass() {
        for value in [
            "",
            "plain",
            "100%%",
            "%REQ(x)%",
            "%REQ(x):5%",
            "%START_TIME(%Y)%",
            "%PROTOCOL()%",
            "%PATH%",
            "a%HOSTNAME%b%%",
            "%DYNAMIC_METADATA([\"a\", \"b\"])%",
        ] {
            assert_eq!(check(value), Ok(()), "{value}");
        }
    }

    #[test]
    fn what_envoy_refuses_is_refused() {
        for value in [
            "100%",
            "% REQ(x)%",
            "%req(x)%",
            "%REQ(x",
            "%NOPE%",
            "%REQ%",
            "%REQ()%",
            "%REQ(x):%",
            "%REQ(a)b%",
            "%PROTOCOL(x)%",
            "%DURATION:3%",
            "%HOSTNAME%%HOSTNAME",
        ] {
            assert!(check(value).is_err(), "{value}");
        }
    }
}
