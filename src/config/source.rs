//! A file of configuration as the shell read it: a label and its text, both shared.

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
