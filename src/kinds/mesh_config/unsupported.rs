//! What the mesh configuration may say and pilotfish does not do (yet).

use crate::kinds::Unsupported;

/// Rows of a path and what happens instead; `= "VALUE"` narrows a row to one value.
macro_rules! table {
    ($($path:literal $(= $value:literal)? => $instead:expr;)*) => {
        &[$(Unsupported { path: $path, value: table!(@ $($value)?), instead: $instead }),*]
    };
    (@) => { None };
    (@ $value:literal) => { Some($value) };
}

const NO_INGRESS: &str = "Kubernetes Ingresses are not read";
const NO_TELEMETRY: &str = "nothing is traced, counted or logged because of it";
const NO_MESH_CERTIFICATES: &str = "proxies get no certificates of the mesh";
const NO_KUBERNETES: &str = "there is no Kubernetes to ask";
const BOOTSTRAP: &str = "it is up to Envoy's bootstrap";
const AGENT: &str = "it is for Istio's agent, which is not used here";
const ENVOYS_OWN: &str = "Envoy's own value holds";
const ISTIOS_HEADERS: &str = "headers are as Istio has them by default";

pub(super) const UNSUPPORTED: &[Unsupported] = table! {
    "hboneIdleTimeout" => "there is no HBONE";
    "ingressClass" => NO_INGRESS;
    "ingressService" => NO_INGRESS;
    "ingressControllerMode" => NO_INGRESS;
    "ingressSelector" => NO_INGRESS;
    "enableTracing" = "true" => NO_TELEMETRY;
    "enableEnvoyAccessLogService" = "true" => NO_TELEMETRY;
    "disableEnvoyListenerLog" => NO_TELEMETRY;
    "outboundTrafficPolicy.mode" = "ALLOW_ANY_DYNAMIC_DNS" =>
        "unknown traffic goes where it was meant to go, as with `ALLOW_ANY`";
    "outboundTrafficPolicy.tls" => "unknown traffic is passed on as it is";
    "configSources" => "configuration comes from `--config-dir`";
    "enableAutoMtls" = "true" => NO_MESH_CERTIFICATES;
    "caCertificates" => NO_MESH_CERTIFICATES;
    "zoneAwareLbSetting" => "requests do not prefer the caller's zone";
    "certificates" => NO_MESH_CERTIFICATES;
    "serviceSettings" => "endpoints of all clusters are used";
    "serviceScopeConfigs" => "there is no ambient mode";
    "enablePrometheusMerge" => AGENT;
    "verifyCertificateAtClient" => "DestinationRules say how servers are verified";
    "ca" => NO_MESH_CERTIFICATES;
    "extensionProviders" => "nothing can refer to them yet";
    "defaultProviders" => NO_TELEMETRY;
    "discoverySelectors" => NO_KUBERNETES;
    "meshMTLS" => NO_MESH_CERTIFICATES;
    "serviceEntryVisibility" => "`exportTo` alone says who sees what";

    "defaultConfig.configPath" => AGENT;
    "defaultConfig.binaryPath" => AGENT;
    "defaultConfig.serviceCluster" => BOOTSTRAP;
    "defaultConfig.tracingServiceName" => NO_TELEMETRY;
    "defaultConfig.drainDuration" => AGENT;
    "defaultConfig.discoveryAddress" => BOOTSTRAP;
    "defaultConfig.discoveryRefreshDelay" => BOOTSTRAP;
    "defaultConfig.zipkinAddress" => NO_TELEMETRY;
    "defaultConfig.statsdUdpAddress" => BOOTSTRAP;
    "defaultConfig.envoyMetricsServiceAddress" => BOOTSTRAP;
    "defaultConfig.proxyAdminPort" => BOOTSTRAP;
    "defaultConfig.availabilityZone" => BOOTSTRAP;
    "defaultConfig.controlPlaneAuthPolicy" => BOOTSTRAP;
    "defaultConfig.customConfigFile" => AGENT;
    "defaultConfig.statNameLength" => BOOTSTRAP;
    "defaultConfig.concurrency" => BOOTSTRAP;
    "defaultConfig.proxyBootstrapTemplatePath" => AGENT;
    "defaultConfig.interceptionMode" => "the node's metadata `INTERCEPTION_MODE` decides";
    "defaultConfig.tracing" => NO_TELEMETRY;
    "defaultConfig.sds" => NO_MESH_CERTIFICATES;
    "defaultConfig.envoyAccessLogService" => NO_TELEMETRY;
    "defaultConfig.envoyMetricsService" => BOOTSTRAP;
    "defaultConfig.proxyMetadata" => BOOTSTRAP;
    "defaultConfig.runtimeValues" => BOOTSTRAP;
    "defaultConfig.statusPort" => AGENT;
    "defaultConfig.extraStatTags" => BOOTSTRAP;
    "defaultConfig.gatewayTopology.forwardClientCertDetails" => ISTIOS_HEADERS;
    "defaultConfig.gatewayTopology.proxyProtocol" =>
        "gateways do not expect the PROXY protocol";
    "defaultConfig.terminationDrainDuration" => AGENT;
    "defaultConfig.meshId" => BOOTSTRAP;
    "defaultConfig.readinessProbe" => AGENT;
    "defaultConfig.proxyStatsMatcher" => BOOTSTRAP;
    "defaultConfig.holdApplicationUntilProxyStarts" => AGENT;
    "defaultConfig.caCertificatesPem" => BOOTSTRAP;
    "defaultConfig.image" => AGENT;
    "defaultConfig.privateKeyProvider" => "private keys are used in software";
    "defaultConfig.proxyHeaders" => ISTIOS_HEADERS;
    "defaultConfig.fileFlushInterval" => BOOTSTRAP;
    "defaultConfig.fileFlushMinSizeKb" => BOOTSTRAP;
    "defaultConfig.statsCompression" => BOOTSTRAP;
    "defaultConfig.connectionSettings" => ENVOYS_OWN;
};
