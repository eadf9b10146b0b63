//! Access logs: Istio's formats, or the mesh's own.

use crate::model::{AccessLog, AccessLogFormat};
use crate::xds::pb::{self, accesslog, core, file_access_log};

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

/// The loggers of requests and connections; none when the mesh has no access log.
pub(super) fn loggers(log: Option<&AccessLog>) -> Vec<accesslog::AccessLog> {
    let Some(log) = log else { return Vec::new() };
    let format = format(&log.format);
    let file = file_access_log::FileAccessLog {
        path: log.path.to_string(),
        access_log_format: Some(file_access_log::file_access_log::AccessLogFormat::LogFormat(
            format,
        )),
    };
    vec![accesslog::AccessLog {
        name: "envoy.access_loggers.file".to_owned(),
        filter: None,
        config_type: Some(accesslog::access_log::ConfigType::TypedConfig(pb::any(&file))),
    }]
}

/// The same loggers on a listener: only connections that no filter chain took (flag `NR`), since
/// the chains log the others.
pub(super) fn of_listener(loggers: &[accesslog::AccessLog]) -> Vec<accesslog::AccessLog> {
    use accesslog::access_log_filter::FilterSpecifier;
    let no_route = accesslog::ResponseFlagFilter { flags: vec!["NR".to_owned()] };
    let filter = accesslog::AccessLogFilter {
        filter_specifier: Some(FilterSpecifier::ResponseFlagFilter(no_route)),
    };
    let filtered = |logger: &accesslog::AccessLog| accesslog::AccessLog {
        filter: Some(filter.clone()),
        ..logger.clone()
    };
    loggers.iter().map(filtered).collect()
}

fn format(format: &AccessLogFormat) -> core::SubstitutionFormatString {
    use core::substitution_format_string::Format;
    let (format, operators) = match format {
        AccessLogFormat::Text(text) => {
            let mut text = text.as_deref().unwrap_or(TEXT).to_owned();
            if !text.ends_with('\n') {
                text.push('\n');
            }
            (Format::TextFormatSource(inline(text.clone())), text)
        }
        AccessLogFormat::Json(keys) => {
            let pairs: Vec<(String, String)> = match keys {
                Some(keys) => keys.clone(),
                None => JSON.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect(),
            };
            let operators: String = pairs.iter().map(|(_, value)| value.as_str()).collect();
            let object = pb::object(pairs.into_iter().map(|(k, v)| (k, pb::string(v))));
            (Format::JsonFormat(object), operators)
        }
    };
    let mut formatters = Vec::new();
    if operators.contains("REQ_WITHOUT_QUERY") {
        formatters.push(pb::typed_extension(
            "envoy.formatter.req_without_query",
            &pb::req_without_query::ReqWithoutQuery {},
        ));
    }
    core::SubstitutionFormatString { format: Some(format), formatters, ..Default::default() }
}

fn inline(text: String) -> core::DataSource {
    core::DataSource {
        specifier: Some(core::data_source::Specifier::InlineString(text)),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pb::core;
    use pb::core::substitution_format_string::Format;

    #[test]
    fn a_text_format_ends_its_line() {
        let text = |format: &AccessLogFormat| match super::format(format).format {
            Some(Format::TextFormatSource(core::DataSource {
                specifier: Some(core::data_source::Specifier::InlineString(text)),
                ..
            })) => text,
            other => panic!("text was expected: {other:?}"),
        };
        assert_eq!(text(&AccessLogFormat::Text(Some("%DURATION%".into()))), "%DURATION%\n");
        assert!(text(&AccessLogFormat::Text(None)).ends_with("%ROUTE_NAME%\n"));
    }

    #[test]
    fn the_operator_without_query_brings_its_formatter() {
        let with = AccessLogFormat::Text(Some("%REQ_WITHOUT_QUERY(:PATH)%".into()));
        assert_eq!(format(&with).formatters.len(), 1);
        assert!(format(&AccessLogFormat::Json(None)).formatters.is_empty());
    }

    #[test]
    fn a_listener_logs_only_what_no_chain_took() {
        let log = AccessLog { path: "/dev/stdout".into(), format: AccessLogFormat::Text(None) };
        assert!(loggers(Some(&log))[0].filter.is_none());
        assert!(of_listener(&loggers(Some(&log)))[0].filter.is_some());
        assert!(loggers(None).is_empty());
    }
}
