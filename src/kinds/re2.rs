//! Whether RE2, and with it Envoy, takes a regular expression, and about how large it gets.
//!
//! The `regex-syntax` crate reads almost the same language. What differs is translated or refused
//! here, so that a pattern that passes is one that Envoy loads.

use regex_syntax::ast::{self, Ast, RepetitionKind, RepetitionRange};
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

/// Istio's limit on the length of a pattern.
const MAX_LENGTH: usize = 1024;

/// RE2's limit on counted repetition.
const MAX_REPEAT: u32 = 1000;

/// Envoy's default limit on the size of a compiled pattern
/// (`re2.max_program_size.error_level`).
pub const ENVOY_DEFAULT_LIMIT: usize = 100;

/// Reads a pattern. `Ok` is about the number of instructions that RE2 makes of it; `Err` says
/// what is wrong.
pub fn check(pattern: &str) -> Result<usize, String> {
    if pattern.is_empty() {
        return Err("the regular expression is empty".to_owned());
    }
    if pattern.len() > MAX_LENGTH {
        return Err(format!(
            "the regular expression has {} bytes; at most {MAX_LENGTH} are allowed",
            pattern.len()
        ));
    }
    let translated = translate(pattern);
    let ast = ast::parse::ParserBuilder::new()
        .nest_limit(250)
        .build()
        .parse(&translated)
        .map_err(|error| wrong(pattern, &error.kind().to_string()))?;
    ast::visit(&ast, Rust2)?;
    let hir = regex_syntax::hir::translate::TranslatorBuilder::new()
        .utf8(true)
        .build()
        .translate(&translated, &ast)
        .map_err(|error| wrong(pattern, &error.kind().to_string()))?;
    // RE2 adds a match, a failure and the unanchored prefix.
    Ok(size(&hir).saturating_add(3))
}

fn wrong(pattern: &str, why: &str) -> String {
    let hint = if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| pattern.contains(look)) {
        "look-around is not part of RE2"
    } else {
        why
    };
    format!("`{pattern}` is no RE2 regular expression: {hint}")
}

/// Rewrites what only RE2 understands or what the crate reads differently.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.char_indices().peekable();
    // Characters since a class was opened; `None` outside of classes.
    let mut class: Option<usize> = None;
    while let Some((at, c)) = chars.next() {
        let rest = &pattern[at..];
        match (c, class) {
            ('\\', None) if rest.starts_with("\\Q") => {
                let quoted = &rest[2..];
                let end = quoted.find("\\E").unwrap_or(quoted.len());
                out.push_str(&regex_syntax::escape(&quoted[..end]));
                let stop = (at + 2 + end + 2).min(pattern.len());
                while chars.peek().is_some_and(|&(next, _)| next < stop) {
                    chars.next();
                }
            }
            ('\\', _) if is_octal(&rest[1..]) => {
                let digits: String =
                    rest[1..].chars().take(3).take_while(|c| ('0'..='7').contains(c)).collect();
                for _ in 0..digits.len() {
                    chars.next();
                }
                let value = u32::from_str_radix(&digits, 8).unwrap_or_default();
                out.push_str(&format!("\\x{{{value:x}}}"));
                class = class.map(|count| count + 1);
            }
            ('\\', _) => {
                out.push(c);
                if let Some((_, escaped)) = chars.next() {
                    // `\C` is any byte.
                    if escaped == 'C' && class.is_none() {
                        out.pop();
                        out.push('.');
                    } else {
                        out.push(escaped);
                    }
                    if "pPx".contains(escaped) && chars.peek().is_some_and(|&(_, c)| c == '{') {
                        for (_, inside) in chars.by_ref() {
                            out.push(inside);
                            if inside == '}' {
                                break;
                            }
                        }
                    }
                }
                class = class.map(|count| count + 1);
            }
            ('[', None) => {
                out.push(c);
                class = Some(0);
                if chars.peek().is_some_and(|&(_, c)| c == '^') {
                    chars.next();
                    out.push('^');
                }
            }
            // Inside a class RE2 knows no nesting and no set operators.
            ('[', Some(_)) if rest.starts_with("[:") => {
                let end = rest.find(":]").map_or(rest.len(), |end| end + 2);
                out.push_str(&rest[..end]);
                while chars.peek().is_some_and(|&(next, _)| next < at + end) {
                    chars.next();
                }
                class = Some(1);
            }
            ('[' | '&' | '~', Some(count)) => {
                out.push('\\');
                out.push(c);
                class = Some(count + 1);
            }
            (']', Some(0)) => {
                out.push_str("\\]");
                class = Some(1);
            }
            (']', Some(_)) => {
                out.push(c);
                class = None;
            }
            (_, Some(count)) => {
                out.push(c);
                class = Some(count + 1);
            }
            ('{', None) if !is_counted(rest) => out.push_str("\\{"),
            ('}', None) if !out_has_open_count(&out) => out.push_str("\\}"),
            (_, None) => out.push(c),
        }
    }
    out
}

/// Whether what follows a backslash is a character in octal: `0`, or at least two digits.
fn is_octal(text: &str) -> bool {
    let octal = |b: Option<&u8>| b.is_some_and(|b| (b'0'..=b'7').contains(b));
    let bytes = text.as_bytes();
    bytes.first() == Some(&b'0') || octal(bytes.first()) && octal(bytes.get(1))
}

/// Whether the text starts with `{n}`, `{n,}` or `{n,m}`; RE2 reads any other `{` as itself.
fn is_counted(text: &str) -> bool {
    let Some((inside, _)) = text[1..].split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

fn out_has_open_count(out: &str) -> bool {
    out.rfind('{').is_some_and(|open| {
        !out[..open].ends_with('\\')
            && out[open + 1..].bytes().all(|b| b.is_ascii_digit() || b == b',')
    })
}

/// Refuses what only the crate understands.
struct Rust2;

impl ast::Visitor for Rust2 {
    type Output = ();
    type Err = String;

    fn finish(self) -> Result<(), String> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), String> {
        match ast {
            Ast::Flags(set) => flags(&set.flags),
            Ast::Group(group) => match &group.kind {
                ast::GroupKind::NonCapturing(set) => flags(set),
                ast::GroupKind::CaptureIndex(_) | ast::GroupKind::CaptureName { .. } => Ok(()),
            },
            Ast::Repetition(repetition) => match &repetition.op.kind {
                RepetitionKind::Range(
                    RepetitionRange::Exactly(n)
                    | RepetitionRange::AtLeast(n)
                    | RepetitionRange::Bounded(_, n),
                ) if *n > MAX_REPEAT => {
                    Err(format!("RE2 repeats at most {MAX_REPEAT} times, not {n}"))
                }
                _ => Ok(()),
            },
            Ast::Assertion(assertion) => match assertion.kind {
                ast::AssertionKind::StartLine
                | ast::AssertionKind::EndLine
                | ast::AssertionKind::StartText
                | ast::AssertionKind::EndText
                | ast::AssertionKind::WordBoundary
                | ast::AssertionKind::NotWordBoundary => Ok(()),
                _ => Err("RE2 has no such word boundary; use `\\b`".to_owned()),
            },
            _ => Ok(()),
        }
    }
}

fn flags(flags: &ast::Flags) -> Result<(), String> {
    for item in &flags.items {
        match item.kind {
            ast::FlagsItemKind::Negation
            | ast::FlagsItemKind::Flag(
                ast::Flag::CaseInsensitive
                | ast::Flag::MultiLine
                | ast::Flag::DotMatchesNewLine
                | ast::Flag::SwapGreed,
            ) => {}
            ast::FlagsItemKind::Flag(_) => {
                return Err("RE2 knows only the flags i, m, s and U".to_owned());
            }
        }
    }
    Ok(())
}

/// About the number of RE2's instructions: one for each range of bytes.
fn size(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty => 0,
        HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => class_size(class),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Capture(capture) => size(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) => parts.iter().map(size).fold(0, usize::saturating_add),
        HirKind::Alternation(parts) => parts.iter().map(size).fold(0, usize::saturating_add),
        HirKind::Repetition(repetition) => {
            let once = size(&repetition.sub);
            match (repetition.min, repetition.max) {
                (0 | 1, None) => once.saturating_add(1),
                (min, None) => once.saturating_mul(min as usize).saturating_add(1),
                (_, Some(max)) => once.saturating_mul(max as usize),
            }
        }
    }
}

fn class_size(class: &ClassUnicode) -> usize {
    let mut bytes = 0;
    let mut wide = 0;
    for range in class.ranges() {
        if range.start().is_ascii() {
            bytes += 1;
        }
        if !range.end().is_ascii() {
            wide += 1;
        }
    }
    // RE2 shares the tails of UTF-8 sequences; a range beyond ASCII costs about four.
    bytes + if wide == 1 { 8 } else { 4 * wide }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_re2_takes_is_taken() {
        for pattern in [
            ".*",
            "/api/v[0-9]+/x",
            "^(.*?;)?(user=jason)(;.*)?$",
            r"(?i)authorization",
            r"[\w.-]+",
            r"[[:alpha:]_]+",
            r"[^]]",
            r"[]a]",
            r"[a[b]",
            r"[a&&b]",
            r"a{",
            r"a{x}",
            r"{id}",
            r"a{2,3}",
            r"\Qa.b\E+",
            r"\pL\p{Greek}",
            r"(?P<name>a)(?<other>b)",
            r"(?s:.)",
            r"\x{10FFFF}",
            r"a}b",
            r"\/a\-b",
        ] {
            assert!(check(pattern).is_ok(), "{pattern}: {:?}", check(pattern));
        }
    }

    #[test]
    fn what_re2_refuses_is_refused() {
        for (pattern, fragment) in [
            ("", "empty"),
            ("*", "no RE2"),
            ("a(?=b)", "look-around"),
            ("(?<!a)b", "look-around"),
            (r"(a)\1", "no RE2"),
            ("(", "no RE2"),
            ("[a", "no RE2"),
            ("a{1001}", "at most 1000"),
            ("(?x)a b", "flags"),
            (r"\Z", "no RE2"),
        ] {
            let problem = check(pattern).expect_err(pattern);
            assert!(problem.contains(fragment), "{pattern}: {problem}");
        }
        assert!(check(&"a".repeat(1025)).expect_err("too long").contains("1024"));
    }

    /// Sizes that Envoy 1.40 was seen to accept or refuse with its default limit.
    #[test]
    fn the_size_tells_what_envoys_default_refuses() {
        let large = "/api/v[0-9]+/customers/[a-zA-Z0-9_-]{1,36}/orders";
        assert!((190..230).contains(&check(large).expect("valid")));
        for small in [
            "(?i)authorization",
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "^(.*?;)?(user=jason)(;.*)?$",
            ".*",
        ] {
            let size = check(small).expect("valid");
            assert!(size <= ENVOY_DEFAULT_LIMIT, "{small}: {size}");
        }
    }
}
