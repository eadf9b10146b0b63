//! Certificates and keys that proxies get by SDS.

use super::{Namespace, Origin};
use std::fmt;
use std::sync::Arc;

/// What a secret is found by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretKey {
    /// The namespace of the Secret document; `None` for a directory below `--secrets-dir`, which
    /// serves every namespace that has no document of that name.
    pub namespace: Option<Namespace>,
    /// The credential's name.
    pub name: Arc<str>,
}

/// One credential: any of its parts may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The document, when it is one.
    pub origin: Option<Origin>,
    /// Certificate chain, PEM.
    pub certificate_chain: Option<Arc<[u8]>>,
    /// Private key, PEM.
    pub private_key: Option<PrivateBytes>,
    /// Certificate authorities to verify peers with, PEM.
    pub ca: Option<Arc<[u8]>>,
    /// Certificate revocation list, PEM.
    pub crl: Option<Arc<[u8]>>,
}

/// Bytes that never print.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateBytes(Arc<[u8]>);

impl PrivateBytes {
    /// Takes the bytes in.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> PrivateBytes {
        PrivateBytes(bytes.into())
    }

    /// The bytes, for the one place that sends them to a proxy.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for PrivateBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::PrivateBytes;

    #[test]
    fn private_bytes_do_not_print() {
        assert_eq!(format!("{:?}", PrivateBytes::new(*b"key")), "[redacted]");
    }
}
