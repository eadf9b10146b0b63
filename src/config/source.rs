//! Files as the shell read them: a label and the content, both shared.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One file's text under the name that the user gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The label of the file as the user named it, with `/` as separator.
    pub path: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

impl SourceFile {
    /// A file of that name with that text.
    pub fn new(path: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }
}

/// A directory of certificate files below the secrets directory.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretFiles {
    /// The name of the directory, which is the name of the credential.
    pub name: Arc<str>,
    /// The label of the directory as the user named it.
    pub path: Arc<str>,
    /// Content by file name: `tls.crt`, `tls.key`, `ca.crt`, `ca.crl`, those that are there.
    pub parts: BTreeMap<String, Arc<[u8]>>,
}

impl fmt::Debug for SecretFiles {
    // Contents are keys, so they are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFiles")
            .field("path", &self.path)
            .field("parts", &self.parts.keys().collect::<Vec<_>>())
            .finish()
    }
}
