//! The access log: Istio's formats, or the mesh's own.

use crate::model::{self, AccessLogFormat};
use std::sync::Arc;

/// Istio's text format (`pilot/pkg/model`, default access log format), kept so that tools which
/// read those lines go on working.
const TEXT: &str = concat!(
    "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" ",
    "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% ",
    "\"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ",
    "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" ",
    "\"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\" %UPSTREAM_CLUSTER_RAW% ",
    "%UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% ",
    "%REQUESTED_SERVER_NAME% %ROUTE_NAME%\n"
);

/// Istio's JSON keys.
const JSON: &[(&str, &str)] = &[
    ("authority", "%REQ(:AUTHORITY)%"),
    ("bytes_received", "%BYTES_RECEIVED%"),
    ("bytes_sent", "%BYTES_SENT%"),
    ("connection_termination_details", "%CONNECTION_TERMINATION_DETAILS%"),
    ("downstream_local_address", "%DOWNSTREAM_LOCAL_ADDRESS%"),
    ("downstream_remote_address", "%DOWNSTREAM_REMOTE_ADDRESS%"),
    ("duration", "%DURATION%"),
    ("method", "%REQ(:METHOD)%"),
    ("path", "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%"),
    ("protocol", "%PROTOCOL%"),
    ("request_id", "%REQ(X-REQUEST-ID)%"),
    ("requested_server_name", "%REQUESTED_SERVER_NAME%"),
    ("response_code", "%RESPONSE_CODE%"),
    ("response_code_details", "%RESPONSE_CODE_DETAILS%"),
    ("response_flags", "%RESPONSE_FLAGS%"),
    ("route_name", "%ROUTE_NAME%"),
    ("start_time", "%START_TIME%"),
    ("upstream_cluster", "%UPSTREAM_CLUSTER_RAW%"),
    ("upstream_host", "%UPSTREAM_HOST%"),
    ("upstream_local_address", "%UPSTREAM_LOCAL_ADDRESS%"),
    ("upstream_service_time", "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%"),
    ("upstream_transport_failure_reason", "%UPSTREAM_TRANSPORT_FAILURE_REASON%"),
    ("user_agent", "%REQ(USER-AGENT)%"),
    ("x_forwarded_for", "%REQ(X-FORWARDED-FOR)%"),
];

/// Where requests and connections are logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccessLog {
    /// File on the proxy's machine.
    pub path: Arc<str>,
    /// What a line says.
    pub format: LogFormat,
    /// Whether an operator stands in it that Envoy knows only with its extension.
    pub without_query: bool,
}

/// What a line of an access log says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogFormat {
    /// This text, with its line end.
    Text(String),
    /// An object of these keys and operators.
    Json(Vec<(String, String)>),
}

impl AccessLog {
    /// The log of the mesh.
    pub fn of(log: &model::AccessLog) -> AccessLog {
        const WITHOUT_QUERY: &str = "REQ_WITHOUT_QUERY";
        let (format, without_query) = match &log.format {
            AccessLogFormat::Text(text) => {
                let mut text = text.as_deref().unwrap_or(TEXT).to_owned();
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                let without_query = text.contains(WITHOUT_QUERY);
                (LogFormat::Text(text), without_query)
            }
            AccessLogFormat::Json(keys) => {
                let pairs = match keys {
                    Some(keys) => keys.clone(),
                    None => JSON.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect(),
                };
                let without_query = pairs.iter().any(|(_, value)| value.contains(WITHOUT_QUERY));
                (LogFormat::Json(pairs), without_query)
            }
        };
        AccessLog { path: log.path.clone(), format, without_query }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(format: AccessLogFormat) -> AccessLog {
        AccessLog::of(&model::AccessLog { path: "/dev/stdout".into(), format })
    }

    #[test]
    fn a_text_format_ends_its_line() {
        let text = |text: Option<&str>| match of(AccessLogFormat::Text(text.map(Into::into))).format
        {
            LogFormat::Text(text) => text,
            LogFormat::Json(_) => panic!("text was expected"),
        };
        assert_eq!(text(Some("%DURATION%")), "%DURATION%\n");
        assert!(text(None).ends_with("%ROUTE_NAME%\n"));
    }

    #[test]
    fn the_operator_without_query_is_noticed() {
        let text = |text: &str| of(AccessLogFormat::Text(Some(text.into()))).without_query;
        assert!(text("%REQ_WITHOUT_QUERY(:PATH)%"));
        assert!(!text("%REQ(:PATH)%"));
        let keys = |value: &str| Some(vec![("path".to_owned(), value.to_owned())]);
        assert!(of(AccessLogFormat::Json(keys("%REQ_WITHOUT_QUERY(:PATH)%"))).without_query);
        assert!(!of(AccessLogFormat::Json(None)).without_query);
    }
}
