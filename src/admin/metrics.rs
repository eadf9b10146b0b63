//! Counters, under istiod's names where the meaning is the same.

use super::findings::Count;
use crate::model::Snapshot;
use crate::push::PushRequest;
use crate::xds::TypeUrl;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FindingLabel {
    source: &'static str,
    severity: &'static str,
}

/// All counters of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    connected: Gauge,
    services: Gauge,
    virtual_services: Gauge,
    findings: Family<FindingLabel, Gauge>,
    pushes: Family<TypeLabel, Counter>,
    bytes: Family<TypeLabel, Counter>,
    rejects: Counter,
    inbound: Family<TypeLabel, Counter>,
    triggers: Family<TypeLabel, Counter>,
    compile_time: Histogram,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Metrics {
        let mut registry = Registry::default();
        let metrics = Metrics {
            connected: Gauge::default(),
            services: Gauge::default(),
            virtual_services: Gauge::default(),
            findings: Family::default(),
            pushes: Family::default(),
            bytes: Family::default(),
            rejects: Counter::default(),
            inbound: Family::default(),
            triggers: Family::default(),
            compile_time: Histogram::new([0.001, 0.01, 0.1, 0.5, 1.0, 3.0, 5.0]),
            registry: Registry::default(),
        };
        registry.register("pilot_xds", "Connected proxies", metrics.connected.clone());
        registry.register("pilot_services", "Known services", metrics.services.clone());
        registry.register(
            "pilot_virt_services",
            "Known VirtualServices",
            metrics.virtual_services.clone(),
        );
        registry.register(
            "pilotfish_findings",
            "What /debug/findings shows, each finding once",
            metrics.findings.clone(),
        );
        registry.register("pilot_xds_pushes", "Responses sent", metrics.pushes.clone());
        registry.register(
            "pilotfish_xds_sent_bytes",
            "Bytes of responses sent",
            metrics.bytes.clone(),
        );
        registry.register(
            "pilot_total_xds_rejects",
            "Responses that a proxy refused",
            metrics.rejects.clone(),
        );
        registry.register(
            "pilot_inbound_updates",
            "Changes of configuration that were noticed",
            metrics.inbound.clone(),
        );
        registry.register("pilot_push_triggers", "Pushes by reason", metrics.triggers.clone());
        registry.register(
            "pilot_pushcontext_init_seconds",
            "Time to compile a snapshot",
            metrics.compile_time.clone(),
        );
        Metrics { registry, ..metrics }
    }

    /// The text for a scrape, in Prometheus' text format 0.0.4.
    ///
    /// The library writes OpenMetrics, which appends `_total` to every counter. istiod's counters
    /// have no such suffix, and dashboards are made for its names, so it is taken off again.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text.lines()
            .filter(|line| *line != "# EOF")
            .map(|line| without_total(line) + "\n")
            .collect()
    }

    /// How many proxies are connected.
    pub fn connected(&self, proxies: usize) {
        self.connected.set(gauge(proxies));
    }

    /// A change of files was noticed.
    pub fn noticed(&self) {
        self.inbound.get_or_create(&TypeLabel { r#type: "config" }).inc();
    }

    /// A snapshot was compiled.
    pub fn compiled(&self, snapshot: &Snapshot, took: Duration) {
        self.services.set(gauge(snapshot.routing.services.len()));
        self.virtual_services.set(gauge(snapshot.routing.virtual_services.len()));
        self.compile_time.observe(took.as_secs_f64());
    }

    /// How many findings there are, by source and severity, those of which there are none included.
    pub fn findings(&self, counts: &[Count]) {
        for count in counts {
            let Count { source, severity, findings } = *count;
            let label = FindingLabel { source: source.as_str(), severity: severity.as_str() };
            self.findings.get_or_create(&label).set(gauge(findings));
        }
    }

    /// A push was started.
    pub fn triggered<P>(&self, request: &PushRequest<P>) {
        for (reason, count) in &request.reasons {
            let label = TypeLabel { r#type: reason.as_str() };
            self.triggers.get_or_create(&label).inc_by(u64::try_from(*count).unwrap_or(u64::MAX));
        }
    }

    /// A response of this size was sent.
    pub fn sent(&self, type_url: TypeUrl, bytes: usize) {
        let label = TypeLabel { r#type: type_url.short_name() };
        self.pushes.get_or_create(&label).inc();
        self.bytes.get_or_create(&label).inc_by(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// A response was refused.
    pub fn refused(&self) {
        self.rejects.inc();
    }
}

fn gauge(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A sample line whose name has lost the suffix `_total`; other lines as they are.
fn without_total(line: &str) -> String {
    let end = line.find(['{', ' ']).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    match name.strip_suffix("_total") {
        Some(name) => format!("{name}{rest}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_istiods_names() {
        let metrics = Metrics::new();
        metrics.sent(TypeUrl::Cluster, 10);
        metrics.refused();
        let text = metrics.encode();
        assert!(text.contains("\npilot_xds_pushes{type=\"cds\"} 1\n"), "{text}");
        assert!(text.contains("\npilot_total_xds_rejects 1\n"), "{text}");
        assert!(!text.contains("rejects_total"), "{text}");
    }
}
