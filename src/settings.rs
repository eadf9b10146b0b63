//! Flags and environment: what was typed, and what it resolves to.
//!
//! A flag beats its `PILOTFISH_...` variable, which beats the default. istiod's spellings of flags
//! (`--configDir`, `--grpcAddr`) are accepted, and its `PILOT_*` variables where they mean the
//! same; those that are set and mean nothing here are named at start-up.

use crate::model::{Locality, parse_duration};
use crate::proxy::NodeDescription;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Istio's traffic API for Envoy fleets that have no Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "pilotfish", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 fine, 1 findings, 2 usage or I/O.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve xDS from a directory of configuration, and follow its changes
    Serve(ServeArgs),
    /// Check configuration and show every finding with its place
    Validate(ValidateArgs),
    /// Show what a proxy would be sent
    Translate(TranslateArgs),
    /// Print a ready Envoy bootstrap for a node
    Bootstrap(BootstrapArgs),
    /// Print the JSON Schema of every kind, for editors
    Schema,
    /// Print the version
    Version,
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// An HTTP server that says who it is, for demos and tests
    #[command(hide = true)]
    Echo(EchoArgs),
}

/// Where configuration is read from.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// Directory of configuration, read recursively; may be given several times
    #[arg(
        long = "config-dir",
        visible_alias = "configDir",
        value_name = "DIR",
        env = "PILOTFISH_CONFIG_DIR",
        value_delimiter = ',',
        required = true
    )]
    pub config_dirs: Vec<PathBuf>,
    #[command(flatten)]
    /// What else is read.
    pub extra: ExtraSourceArgs,
}

/// Files beside the configuration directories.
#[derive(Debug, Clone, Default, Args)]
pub struct ExtraSourceArgs {
    /// MeshConfig file; without it, mesh.yaml in the root of the first configuration directory
    #[arg(long, visible_alias = "meshConfig", value_name = "FILE", env = "PILOTFISH_MESH_CONFIG")]
    pub mesh_config: Option<PathBuf>,
    /// Directory with one directory for each credential, holding tls.crt, tls.key and ca.crt
    #[arg(long, value_name = "DIR", env = "PILOTFISH_SECRETS_DIR")]
    pub secrets_dir: Option<PathBuf>,
    /// DNS suffix that short host names are completed with
    #[arg(long, value_name = "SUFFIX", default_value = "cluster.local", env = "PILOTFISH_DOMAIN")]
    pub domain: String,
}

/// `pilotfish serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    /// Where configuration is read from.
    pub source: SourceArgs,
    /// Address of the plaintext xDS server
    #[arg(
        long,
        visible_alias = "grpcAddr",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:15010",
        env = "PILOTFISH_GRPC_ADDR",
        value_parser = address
    )]
    pub grpc_addr: SocketAddr,
    /// Address of the debug and readiness server
    #[arg(
        long,
        visible_alias = "httpAddr",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:8080",
        env = "PILOTFISH_HTTP_ADDR",
        value_parser = address
    )]
    pub http_addr: SocketAddr,
    /// Address of the metrics server
    #[arg(
        long,
        visible_alias = "monitoringAddr",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:15014",
        env = "PILOTFISH_MONITORING_ADDR",
        value_parser = address
    )]
    pub monitoring_addr: SocketAddr,
    /// How changes are noticed: events of the file system with a slow poll beside, or only a poll
    #[arg(long, value_enum, default_value_t = WatchMode::Auto, env = "PILOTFISH_WATCH")]
    pub watch: WatchMode,
    /// How long open streams may take to end after SIGTERM
    #[arg(
        long,
        visible_alias = "shutdownDuration",
        value_name = "DURATION",
        default_value = "10s",
        env = "PILOTFISH_SHUTDOWN_DURATION",
        value_parser = duration
    )]
    pub shutdown_duration: Duration,
    /// Quiet time before a change is pushed
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "100ms",
        env = "PILOT_DEBOUNCE_AFTER",
        value_parser = duration
    )]
    pub debounce_after: Duration,
    /// Longest time that changes are held back
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        env = "PILOT_DEBOUNCE_MAX",
        value_parser = duration
    )]
    pub debounce_max: Duration,
    /// Whether changes of endpoints alone wait for quiet too
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        action = clap::ArgAction::Set,
        env = "PILOT_ENABLE_EDS_DEBOUNCE"
    )]
    pub enable_eds_debounce: bool,
    /// Most proxies that are pushed to at the same time; 0 chooses by the number of cores
    #[arg(long, value_name = "N", default_value_t = 0, env = "PILOT_PUSH_THROTTLE")]
    pub push_throttle: usize,
    /// Log format; the default is text on a terminal and JSON elsewhere
    #[arg(long, value_enum, env = "PILOTFISH_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
    /// What is logged, as levels by module: info, pilotfish=debug
    #[arg(long, value_name = "FILTER", default_value = "info", env = "PILOTFISH_LOG")]
    pub log: String,
}

/// How file changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WatchMode {
    /// Events, and a slow poll as a safety net
    Auto,
    /// Only a poll, for file systems without events
    Poll,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For machines
    Json,
}

/// `pilotfish validate`.
#[derive(Debug, Clone, Args)]
pub struct ValidateArgs {
    /// Files and directories to check; they are checked together
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    /// What else is read.
    pub extra: ExtraSourceArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    pub output: ReportFormat,
}

/// Formats of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// With an excerpt of the file
    Text,
    /// One JSON array
    Json,
}

/// `pilotfish translate`.
#[derive(Debug, Clone, Args)]
pub struct TranslateArgs {
    #[command(flatten)]
    /// Where configuration is read from.
    pub source: SourceArgs,
    #[command(flatten)]
    /// Who the proxy is.
    pub node: NodeArgs,
    /// Only resources of this type; may be given several times
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub types: Vec<XdsType>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = DataFormat::Json)]
    pub output: DataFormat,
}

/// Who a proxy is.
#[derive(Debug, Clone, Args)]
pub struct NodeArgs {
    /// Node id: a plain name, or Istio's type~ip~name.namespace~domain
    #[arg(long = "proxy", visible_alias = "node-id", value_name = "NODE_ID")]
    pub id: String,
    /// Node cluster; gives the label app when the metadata has no LABELS
    #[arg(long = "node-cluster", value_name = "NAME", default_value = "")]
    pub cluster: String,
    /// Node metadata as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = json_object)]
    pub metadata: JsonObject,
    /// Node locality as region/zone/subzone
    #[arg(long, value_name = "LOCALITY", default_value = "")]
    pub locality: String,
}

impl NodeArgs {
    /// The node's cluster. Envoy insists on one, so a node without gets its id.
    pub fn cluster_or_id(&self) -> &str {
        if self.cluster.is_empty() { &self.id } else { &self.cluster }
    }

    /// The node as the core knows it.
    pub fn description(&self) -> NodeDescription {
        NodeDescription {
            id: self.id.clone(),
            cluster: self.cluster_or_id().to_owned(),
            metadata: self.metadata.clone(),
            locality: Locality::parse(&self.locality),
        }
    }
}

/// A JSON object given on the command line.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// xDS types by their short names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum XdsType {
    /// Listeners
    Lds,
    /// Routes
    Rds,
    /// Clusters
    Cds,
    /// Endpoints
    Eds,
    /// Secrets
    Sds,
}

/// Formats of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataFormat {
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// `pilotfish bootstrap`.
#[derive(Debug, Clone, Args)]
pub struct BootstrapArgs {
    #[command(flatten)]
    /// Who the proxy is.
    pub node: NodeArgs,
    /// Where pilotfish listens, as Envoy reaches it
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:15010")]
    pub xds_addr: String,
    /// Address of Envoy's admin page
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:15000", value_parser = address)]
    pub admin_addr: SocketAddr,
    /// Use the delta protocol: less is sent in large fleets
    #[arg(long)]
    pub delta: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = DataFormat::Yaml)]
    pub output: DataFormat,
}

/// `pilotfish completion`.
#[derive(Debug, Clone, Args)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `pilotfish echo`.
#[derive(Debug, Clone, Args)]
pub struct EchoArgs {
    /// Address to listen on
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub listen: SocketAddr,
    /// The name that answers carry
    #[arg(long, value_name = "NAME")]
    pub name: String,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 100ms, 10s or 1m30s".to_owned())
}

/// Reads `HOST:PORT`; istiod's `:PORT` is every address, and `localhost` is the loopback address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => text.replacen("localhost:", "127.0.0.1:", 1),
    };
    full.parse()
        .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:15010".to_owned())
}

fn json_object(text: &str) -> Result<JsonObject, String> {
    serde_json::from_str(text).map_err(|e| format!("expected a JSON object: {e}"))
}

/// `PILOT_*` variables that mean here what they mean in istiod.
const SUPPORTED_PILOT_VARIABLES: &[&str] = &[
    "PILOT_DEBOUNCE_AFTER",
    "PILOT_DEBOUNCE_MAX",
    "PILOT_ENABLE_EDS_DEBOUNCE",
    "PILOT_PUSH_THROTTLE",
];

/// The `PILOT_*` variables that are set and have no effect, sorted.
pub fn unsupported_pilot_variables(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut unsupported: Vec<String> = names
        .into_iter()
        .filter(|n| n.starts_with("PILOT_") && !SUPPORTED_PILOT_VARIABLES.contains(&n.as_str()))
        .collect();
    unsupported.sort();
    unsupported
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn istiods_spellings_are_accepted() {
        let cli = Cli::try_parse_from([
            "pilotfish",
            "serve",
            "--configDir",
            "a",
            "--configDir",
            "b",
            "--grpcAddr",
            ":15010",
            "--httpAddr",
            "localhost:0",
            "--meshConfig",
            "m.yaml",
        ])
        .expect("istiod's flags parse");
        let Command::Serve(args) = cli.command else { panic!("serve was asked for") };
        assert_eq!(args.source.config_dirs.len(), 2);
        assert_eq!(args.grpc_addr.to_string(), "0.0.0.0:15010");
        assert_eq!(args.http_addr.to_string(), "127.0.0.1:0");
        assert_eq!(args.source.extra.mesh_config, Some(PathBuf::from("m.yaml")));
    }

    #[test]
    fn values_that_make_no_sense_say_what_is_expected() {
        for (flag, value, expected) in [
            ("--grpc-addr", "nowhere", "an IP address and a port"),
            ("--debounce-after", "5", "a duration"),
        ] {
            let args = ["pilotfish", "serve", "--config-dir", "a", flag, value];
            let error = Cli::try_parse_from(args).expect_err("must be refused");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn unknown_pilot_variables_are_named() {
        let names = ["PILOT_HTTP10", "PILOT_DEBOUNCE_MAX", "PATH", "PILOT_A"].map(String::from);
        assert_eq!(unsupported_pilot_variables(names), ["PILOT_A", "PILOT_HTTP10"]);
    }
}
