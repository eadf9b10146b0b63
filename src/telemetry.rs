//! Logs: for people on a terminal, for machines elsewhere or on request.

use crate::settings::LogFormat;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging to standard error. Later calls have no effect, so tests may call it freely.
///
/// # Errors
///
/// The filter cannot be understood.
pub fn init(format: Option<LogFormat>, filter: &str) -> anyhow::Result<()> {
    // The watcher library reports lost watches, which we renew and which mean nothing to users.
    let filter = EnvFilter::try_new(format!("notify=off,{filter}"))?;
    let terminal = std::io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Failure means that logging has been started already.
    let _ = match format {
        LogFormat::Text => builder.with_ansi(terminal).with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}
