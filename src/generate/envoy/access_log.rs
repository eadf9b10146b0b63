//! Access logs.

use crate::generate::plan::listener::{AccessLog, LogFormat};
use crate::xds::pb::{self, accesslog, core, file_access_log};

/// The loggers of requests and connections.
pub(super) fn loggers(log: Option<&AccessLog>) -> Vec<accesslog::AccessLog> {
    use file_access_log::file_access_log::AccessLogFormat;
    let logger = |log: &AccessLog| {
        let file = file_access_log::FileAccessLog {
            path: log.path.to_string(),
            access_log_format: Some(AccessLogFormat::LogFormat(format(log))),
        };
        accesslog::AccessLog {
            name: "envoy.access_loggers.file".to_owned(),
            filter: None,
            config_type: Some(accesslog::access_log::ConfigType::TypedConfig(pb::any(&file))),
        }
    };
    log.map(logger).into_iter().collect()
}

/// The same on a listener: only connections that no filter chain took (flag `NR`), since the chains
/// log the others.
pub(super) fn of_listener(log: Option<&AccessLog>) -> Vec<accesslog::AccessLog> {
    use accesslog::access_log_filter::FilterSpecifier;
    let mut loggers = loggers(log);
    for logger in &mut loggers {
        let no_route = accesslog::ResponseFlagFilter { flags: vec!["NR".to_owned()] };
        logger.filter = Some(accesslog::AccessLogFilter {
            filter_specifier: Some(FilterSpecifier::ResponseFlagFilter(no_route)),
        });
    }
    loggers
}

fn format(log: &AccessLog) -> core::SubstitutionFormatString {
    use core::substitution_format_string::Format;
    let format = match &log.format {
        LogFormat::Text(text) => Format::TextFormatSource(inline(text.clone())),
        LogFormat::Json(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| (key.clone(), pb::string(value.clone())));
            Format::JsonFormat(pb::object(pairs))
        }
    };
    let mut formatters = Vec::new();
    if log.without_query {
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

    fn log(without_query: bool) -> AccessLog {
        let format = LogFormat::Text("%DURATION%\n".into());
        AccessLog { path: "/dev/stdout".into(), format, without_query }
    }

    #[test]
    fn the_operator_without_query_brings_its_formatter() {
        assert_eq!(format(&log(true)).formatters.len(), 1);
        assert!(format(&log(false)).formatters.is_empty());
    }

    #[test]
    fn a_listener_logs_only_what_no_chain_took() {
        assert!(loggers(Some(&log(false)))[0].filter.is_none());
        assert!(of_listener(Some(&log(false)))[0].filter.is_some());
        assert!(loggers(None).is_empty());
    }
}
