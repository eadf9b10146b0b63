//! A NACK as a diagnostic: the last chance to tell the user what Envoy thinks of their documents.

use crate::diag::{Code, Diagnostic};
use crate::xds::TypeUrl;
use std::sync::Arc;

/// The longest message that is kept, in bytes.
const MAX_MESSAGE: usize = 4096;

/// The client's message on one line and of bounded length: it comes from the network and ends up
/// in logs and on debug pages.
pub(super) fn tidy(message: &str) -> Arc<str> {
    let mut tidy = String::with_capacity(message.len().min(MAX_MESSAGE));
    for c in message.trim().chars() {
        let c = if c.is_control() { ' ' } else { c };
        if tidy.len() + c.len_utf8() > MAX_MESSAGE {
            tidy.push('…');
            break;
        }
        tidy.push(c);
    }
    if tidy.is_empty() {
        tidy.push_str("no reason given");
    }
    tidy.into()
}

/// The diagnostic for a refused response.
pub(super) fn refused(proxy: &str, type_url: TypeUrl, message: &str) -> Diagnostic {
    let message = message.trim_end_matches('.');
    let text = format!("the proxy refused its {}: {message}", type_url.plural());
    let diagnostic = Diagnostic::new(Code::RejectedByProxy, text).on(format!("proxy {proxy}"));
    if heals_by_itself(type_url, message) {
        return diagnostic
            .help("stop what uses the address, or listen elsewhere; it is tried again by itself");
    }
    diagnostic
}

/// Whether the same content may be accepted later. Envoy does not try again by itself to bind a
/// port that another process had, but accepts the listener when it is sent again.
pub(super) fn heals_by_itself(type_url: TypeUrl, message: &str) -> bool {
    type_url == TypeUrl::Listener && message.contains("Address already in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        assert_eq!(&*tidy("a\nb\r\n"), "a b");
        assert_eq!(&*tidy(""), "no reason given");
        let long = tidy(&"é".repeat(5000));
        assert!(long.len() <= MAX_MESSAGE + '…'.len_utf8() && long.ends_with('…'));
    }

    #[test]
    fn a_refusal_names_proxy_and_type() {
        let diagnostic = refused("edge-1", TypeUrl::Route, "Only unique values for domains.");
        assert_eq!(
            diagnostic.to_string(),
            "error[PF0406]: the proxy refused its routes: Only unique values for domains \
             (proxy edge-1)"
        );
    }

    #[test]
    fn a_busy_port_is_worth_another_try() {
        let message = "cannot bind '127.0.0.1:53901': Address already in use";
        assert!(heals_by_itself(TypeUrl::Listener, message));
        assert!(!heals_by_itself(TypeUrl::Listener, "duplicate address"));
        assert!(refused("p", TypeUrl::Listener, message).help.is_some());
    }
}
