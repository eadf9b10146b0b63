//! Changes to finished messages, between spelling them and making bytes of them: the one place
//! where configuration may reach into Envoy's own terms.

use super::Subject;
use crate::xds::pb::{Message, Name};

/// The message as it is to leave. No kind of document that is supported patches messages, so each
/// leaves as it was spelled.
///
/// A patch may go by what the message is and why it is there, and by the message; it sees neither
/// the snapshot nor the proxy, so that whoever shares the planned thing shares the patched message.
pub(super) fn patch<M: Message + Name>(_subject: &Subject<'_>, message: M) -> M {
    message
}
