//! Fields that are valid but mean nothing to pilotfish yet: one table a kind, from which both the
//! warnings and the README's table are made.

/// A field whose use gives a "not supported yet" warning.
#[derive(Debug, Clone, Copy)]
pub struct Unsupported {
    /// Path pattern: `spec.http[].match[].headers`. `[]` stands for any index, `{}` for any key.
    pub path: &'static str,
    /// The value that is not supported; `None` is any value that is not null.
    pub value: Option<&'static str>,
    /// What happens instead, as half a sentence ("the default balancer is used").
    pub instead: &'static str,
}
