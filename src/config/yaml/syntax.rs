//! The parser's complaints in words that help someone who edits YAML by hand.

use crate::diag::Code;

/// Code, message and help for a complaint of the YAML parser.
pub(super) fn explain(info: &str) -> (Code, String, Option<&'static str>) {
    const TABLE: &[(&str, &str, Option<&str>)] = &[
        (
            "tabs disallowed",
            "a tab is used for indentation",
            Some("YAML is indented with spaces only"),
        ),
        (
            "mapping values are not allowed",
            "a `:` is not allowed here",
            Some("the line may be indented too far, or the value contains `: ` and must be quoted"),
        ),
        (
            "simple key expect",
            "this line has no `:`, or the text above it was not meant to go on here",
            Some("a mapping needs `key: value` on each line"),
        ),
        (
            "did not find expected key",
            "the indentation fits no mapping or list above",
            Some("line the key up with its neighbours"),
        ),
        (
            "did not find expected '-'",
            "a list ends here, but the indentation says that it goes on",
            Some("start the line with `- `, or indent it less"),
        ),
        (
            "block sequence entries are not allowed",
            "a list entry `- ` is not allowed here",
            Some("begin the list on a line of its own"),
        ),
        (
            "found unknown anchor",
            "no anchor of this name is defined above in the document",
            Some("text that starts with `*` must be quoted"),
        ),
        (
            "found unexpected end of stream",
            "the quoted text does not end before the document does",
            Some("close the quote"),
        ),
        (
            "found unexpected document indicator",
            "the quoted text does not end before the `---` line",
            Some("close the quote"),
        ),
        (
            "invalid trailing content after",
            "there is text after the closing quote",
            Some("quote the value as a whole"),
        ),
        (
            "unknown escape",
            "the quoted text has an escape that YAML does not know",
            Some("write `\\\\` for a backslash, or use single quotes"),
        ),
        (
            "invalid indentation in quoted scalar",
            "a line of the quoted text is not indented",
            Some("indent it more than its key"),
        ),
        ("invalid indentation", "the line is not indented enough", None),
        (
            "expected ',' or '}'",
            "the `{` mapping is not closed, or a comma is missing",
            Some("add `,` or `}`"),
        ),
        (
            "expected ',' or ']'",
            "the `[` list is not closed, or a comma is missing",
            Some("add `,` or `]`"),
        ),
        (
            "illegal placement of ':'",
            "a `:` is not allowed here; a bracket may not be closed",
            None,
        ),
        (
            "only valid inside a block",
            "a `- ` is not allowed inside brackets",
            Some("text in double curly braces must be quoted"),
        ),
        ("misplaced bracket", "this bracket closes nothing", None),
        (
            "unexpected character",
            "a value must not start with this character",
            Some("put the value in quotes"),
        ),
        (
            "block scalar",
            "the block text after `|` or `>` is not well-formed",
            Some("the text starts on the next line, indented more than its key"),
        ),
        ("unprintable character", "the text has a character that YAML does not allow", None),
        ("handle wasn't declared", "the tag uses a handle that no %TAG directive declares", None),
        ("while scanning a directive", "the `%` directive is not well-formed", None),
        ("unexpected eof", "the document ends too early", None),
    ];
    if info.contains("recursion limit") {
        return (Code::YamlLimit, "brackets nest too deep".to_owned(), None);
    }
    let (message, help) = match TABLE.iter().find(|(part, ..)| info.contains(part)) {
        Some((_, message, help)) => ((*message).to_owned(), *help),
        None => (format!("not valid YAML: {info}"), None),
    };
    (Code::YamlSyntax, message, help)
}
