//! Whether RE2, and with it Envoy, takes a regular expression, and about how large it gets.
//!
//! The `regex-syntax` crate reads almost the same language. What differs is translated or refused
//! here, so that a pattern that passes is one that Envoy loads.

use regex_syntax::ast::{self, Ast, RepetitionKind, RepetitionRange};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// Istio's limit on the length of a pattern.
const MAX_LENGTH: usize = 1024;

/// RE2's limit on counted repetition, multiplied over nested ones.
const MAX_REPEAT: u32 = 1000;

/// Keeps recursion over patterns shallow.
const NEST_LIMIT: u32 = 250;

/// Envoy's default limit on the size of a compiled pattern
/// (`re2.max_program_size.error_level`).
pub const ENVOY_DEFAULT_LIMIT: usize = 100;

/// POSIX character classes.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

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
    let wrong = |why: &str| wrong(pattern, why);
    // Envoy has RE2 read bytes, not characters.
    let latin1: String = pattern.bytes().map(char::from).collect();
    let translated = translate(&latin1).map_err(|why| wrong(&why))?;
    let ast = ast::parse::ParserBuilder::new()
        .nest_limit(NEST_LIMIT)
        .build()
        .parse(&translated)
        .map_err(|error| wrong(&error.kind().to_string()))?;
    ast::visit(&ast, Foreign).map_err(|why| wrong(&why))?;
    if repeats(&ast) > MAX_REPEAT {
        return Err(wrong(&format!("RE2 repeats at most {MAX_REPEAT} times in all")));
    }
    let hir = regex_syntax::hir::translate::TranslatorBuilder::new()
        .utf8(true)
        .build()
        .translate(&translated, &ast)
        .map_err(|error| wrong(&error.kind().to_string()))?;
    // Four more were always there in what Envoy reported.
    Ok(size(&hir).saturating_add(4))
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
fn translate(pattern: &str) -> Result<String, String> {
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
                let escaped = chars.next().map_or('\0', |(_, escaped)| escaped);
                match (escaped, class) {
                    // Any byte.
                    ('C', None) => out.push_str("(?s:.)"),
                    // Punctuation stands for itself.
                    ('<' | '>', _) => out.push(escaped),
                    // ASCII only, other than in the crate.
                    ('d' | 's' | 'w' | 'D' | 'S' | 'W', _) => {
                        out.push_str(&perl_class(escaped, class.is_some()));
                    }
                    ('\0', _) => out.push('\\'),
                    _ => out.extend(['\\', escaped]),
                }
                if "pPx".contains(escaped) && chars.peek().is_some_and(|&(_, c)| c == '{') {
                    for (_, inside) in chars.by_ref() {
                        out.push(inside);
                        if inside == '}' {
                            break;
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
                let name = rest[2..end].trim_end_matches(":]").trim_start_matches('^');
                if !CLASSES.contains(&name) {
                    return Err(format!("`[:{name}:]` is no class of characters"));
                }
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
    Ok(out)
}

/// What `\d` and its kin stand for.
fn perl_class(letter: char, in_class: bool) -> String {
    let members = match letter.to_ascii_lowercase() {
        'd' => "0-9",
        's' => r"\t\n\x0C\r ",
        _ => "0-9A-Za-z_",
    };
    if letter.is_ascii_uppercase() {
        format!("[^{members}]")
    } else if in_class {
        members.to_owned()
    } else {
        format!("[{members}]")
    }
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
struct Foreign;

impl ast::Visitor for Foreign {
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
            Ast::Repetition(repetition) if matches!(*repetition.ast, Ast::Repetition(_)) => {
                Err("a repetition cannot be repeated without a group".to_owned())
            }
            Ast::Literal(literal) => character(literal),
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

    fn visit_class_set_item_pre(&mut self, item: &ast::ClassSetItem) -> Result<(), String> {
        match item {
            ast::ClassSetItem::Literal(literal) => character(literal),
            ast::ClassSetItem::Range(range) => {
                character(&range.start).and_then(|()| character(&range.end))
            }
            _ => Ok(()),
        }
    }
}

fn character(literal: &ast::Literal) -> Result<(), String> {
    match literal.kind {
        ast::LiteralKind::HexFixed(
            ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong,
        )
        | ast::LiteralKind::HexBrace(
            ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong,
        ) => Err("RE2 has no `\\u`; use `\\x`".to_owned()),
        _ if u32::from(literal.c) > 0xFF => {
            Err("Envoy compares bytes; `\\x` goes up to `\\xFF`".to_owned())
        }
        _ => Ok(()),
    }
}

/// How often the most repeated part is repeated by counts.
fn repeats(ast: &Ast) -> u32 {
    let most = |parts: &[Ast]| parts.iter().map(repeats).max().unwrap_or(1);
    match ast {
        Ast::Repetition(repetition) => {
            let times = match repetition.op.kind {
                RepetitionKind::Range(
                    RepetitionRange::Exactly(n)
                    | RepetitionRange::AtLeast(n)
                    | RepetitionRange::Bounded(_, n),
                ) => n.max(1),
                RepetitionKind::ZeroOrOne
                | RepetitionKind::ZeroOrMore
                | RepetitionKind::OneOrMore => 1,
            };
            repeats(&repetition.ast).saturating_mul(times)
        }
        Ast::Group(group) => repeats(&group.ast),
        Ast::Concat(concat) => most(&concat.asts),
        Ast::Alternation(alternation) => most(&alternation.asts),
        _ => 1,
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

/// About the number of RE2's instructions: one for each range of bytes, and one for each place
/// where it may go on in two ways.
fn size(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty => 0,
        HirKind::Look(_) => 1,
        HirKind::Literal(literal) => String::from_utf8_lossy(&literal.0).chars().count(),
        HirKind::Class(Class::Unicode(class)) => class_size(class),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Capture(capture) => size(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) => parts.iter().map(size).fold(0, usize::saturating_add),
        HirKind::Alternation(parts) => {
            let all = parts.iter().map(size).fold(0, usize::saturating_add);
            // Neighbours share what they begin with.
            let shared: usize = parts.windows(2).map(|pair| shared(&pair[0], &pair[1])).sum();
            all.saturating_sub(shared)
        }
        HirKind::Repetition(repetition) => {
            let once = size(&repetition.sub);
            let min = repetition.min as usize;
            match repetition.max {
                None => once.saturating_mul(min.max(1)).saturating_add(1),
                Some(max) => {
                    let max = max as usize;
                    once.saturating_mul(max).saturating_add(max.saturating_sub(min))
                }
            }
        }
    }
}

/// How many characters two alternatives have in common at their start.
fn shared(a: &Hir, b: &Hir) -> usize {
    let start = |hir: &Hir| match hir.kind() {
        HirKind::Literal(literal) => String::from_utf8_lossy(&literal.0).into_owned(),
        HirKind::Concat(parts) => match parts.first().map(Hir::kind) {
            Some(HirKind::Literal(literal)) => String::from_utf8_lossy(&literal.0).into_owned(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    start(a).chars().zip(start(b).chars()).take_while(|(a, b)| a == b).count()
}

/// The ranges of bytes. Where both cases of each letter are in, RE2 keeps the lower one only.
fn class_size(class: &ClassUnicode) -> usize {
    let has = |c: char| class.ranges().iter().any(|r| r.start() <= c && c <= r.end());
    let folds = ('a'..='z').all(|c| has(c) == has(c.to_ascii_uppercase()));
    let byte = |r: &&ClassUnicodeRange| u32::from(r.start()) <= 0xFF;
    let upper = |r: &ClassUnicodeRange| r.start() >= 'A' && r.end() <= 'Z';
    class.ranges().iter().filter(byte).filter(|r| !(folds && upper(r))).count()
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
            r"\xFF\x{ff}",
            r"\<a\>",
            r"[\D\s]\W",
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
            ("(a{100}){100}", "at most 1000"),
            (r"\x{100}", "bytes"),
            (r"\u0041", "no `\\u`"),
            ("a**", "repeated"),
            ("a++", "repeated"),
            ("[[:foo:]]", "`[:foo:]`"),
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
        assert_eq!(check(large), Ok(209));
        assert_eq!(check("(foo|bar|baz|qux){10}"), Ok(124));
        for small in [
            "(?i)authorization",
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "^(.*?;)?(user=jason)(;.*)?$",
            ".*",
            ".{1,20}",
            "[a-zA-Z0-9]{33}",
            r"\w{20}",
            r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}",
        ] {
            let size = check(small).expect("valid");
            assert!(size <= ENVOY_DEFAULT_LIMIT, "{small}: {size}");
        }
    }
}
