//! A NACK as a diagnostic: the last chance to tell the user what Envoy thinks of their documents.

use crate::diag::{Code, Diagnostic};
use crate::xds::TypeUrl;
use std::sync::Arc;

/// The longest message that is kept, in bytes.
const MAX_MESSAGE: usize = 4096;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// The client's message on one line, of bounded length and without secrets: it comes from the
/// network and ends up in logs and on debug pages.
pub(super) fn tidy(type_url: TypeUrl, message: &str) -> Arc<str> {
    let message = &*without_secrets(type_url, message);
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

/// The message without what may be a key. Envoy's message about a resource that breaks a constraint
/// ends with the whole resource as text, and a secret is a resource.
fn without_secrets(type_url: TypeUrl, message: &str) -> String {
    let message = without_pem(message);
    match type_url {
        TypeUrl::Secret => without_quoted(&message),
        TypeUrl::Cluster | TypeUrl::Endpoint | TypeUrl::Listener | TypeUrl::Route => message,
    }
}

/// Without the contents of PEM blocks, whole or cut off.
fn without_pem(message: &str) -> String {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let mut kept = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, block)) = rest.split_once(BEGIN) {
        kept.push_str(before);
        kept.push_str(REDACTED);
        let after = block.split_once(END).and_then(|(_, end)| end.split_once("-----"));
        rest = after.map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

/// Without what stands between double quotes; a quote after a backslash ends nothing.
fn without_quoted(message: &str) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut quoted = false;
    let mut escaped = false;
    for c in message.chars() {
        match (quoted, c) {
            (false, '"') => {
                quoted = true;
                kept.push(c);
                kept.push_str(REDACTED);
            }
            (true, '"') if !escaped => {
                quoted = false;
                kept.push(c);
            }
            (false, c) => kept.push(c),
            (true, _) => {}
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    kept
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
        let tidy = |message: &str| tidy(TypeUrl::Cluster, message);
        assert_eq!(&*tidy("a\nb\r\n"), "a b");
        assert_eq!(&*tidy(""), "no reason given");
        let long = tidy(&"é".repeat(5000));
        assert!(long.len() <= MAX_MESSAGE + '…'.len_utf8() && long.ends_with('…'));
    }

    #[test]
    fn keys_are_cut_out_of_any_message() {
        let block = "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----";
        for type_url in TypeUrl::ALL {
            let whole = tidy(type_url, &format!("bad key {block}\\n and {block} there"));
            assert_eq!(&*whole, "bad key [redacted]\\n and [redacted] there");
            let cut_off = tidy(type_url, "bad key -----BEGIN PRIVATE KEY-----\nMIIE");
            assert_eq!(&*cut_off, "bad key [redacted]");
        }
    }

    #[test]
    fn a_refused_secret_is_not_quoted() {
        let message = r#"Proto constraint validation failed (x: y): generic_secret { secret { inline_string: "a\"b\\" } } name: "n""#;
        let expected = r#"Proto constraint validation failed (x: y): generic_secret { secret { inline_string: "[redacted]" } } name: "[redacted]""#;
        assert_eq!(&*tidy(TypeUrl::Secret, message), expected);
        assert_eq!(&*tidy(TypeUrl::Route, message), message);
        assert_eq!(
            &*tidy(TypeUrl::Secret, "inline_string: \"cut o"),
            "inline_string: \"[redacted]"
        );
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
