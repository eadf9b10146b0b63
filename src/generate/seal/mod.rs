//! From messages to resources: the room through which everything leaves. What happens to a message
//! here happens once, in this order:
//!
//! ```text
//! collect      what generators hand over, with why it is there     collect.rs
//! patch        changes to finished messages                        patch.rs
//! bytes        the canonical encoding                              fragment.rs
//! constraints  what Envoy would refuse is left out and told        fragment.rs
//! hash         the version of a resource is that of its bytes      fragment.rs
//! ```
//!
//! A message that others contain (a route, a virtual host) goes through the same steps as a
//! [`Fragment`], and its bytes are then used in each message that contains it.

mod collect;
mod fragment;
mod patch;
#[cfg(test)]
mod tests;

pub use collect::Output;
pub use fragment::{Fragment, Whole};

use crate::diag::{Code, Diagnostic};
use crate::generate::plan::Because;
use crate::xds::constraints::Violation;
use crate::xds::pb::{Message, Name};
use crate::xds::{Resource, TypeUrl};

/// What a message is, beside its content: all that a patch can go by.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its type.
    pub what: What,
    /// The name of the planned thing that it spells.
    pub name: &'a str,
    /// Why that is there.
    pub because: &'a Because,
}

/// The type of a message that is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// A resource.
    Resource(TypeUrl),
    /// A virtual host in route configurations.
    VirtualHost,
    /// A route in virtual hosts.
    Route,
}

/// The resource of a message.
///
/// # Errors
///
/// The finding to report when it breaks Envoy's proto constraints: it has to be left out then,
/// because Envoy would refuse the whole response with it, and every good resource of its type.
pub fn resource<M: Message + Name>(
    type_url: TypeUrl,
    name: &str,
    because: &Because,
    message: M,
) -> Result<Resource, Box<Diagnostic>> {
    let subject = Subject { what: What::Resource(type_url), name, because };
    Fragment::of(&subject, message).into_resource(type_url, name)
}

fn refused(type_url: TypeUrl, name: &str, violations: &[Violation]) -> Diagnostic {
    let reasons: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Diagnostic::new(
        Code::InvalidResource,
        format!(
            "Envoy would refuse the {} resource '{name}', so it is left out: {}",
            type_url.short_name(),
            reasons.join("; ")
        ),
    )
}
