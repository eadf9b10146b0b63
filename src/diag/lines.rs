//! What a line is: the one definition behind every position, shared by reading and rendering.

/// Lines with their breaks. As in YAML, `\n`, `\r\n` and a lone `\r` break lines.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let bytes = rest.as_bytes();
        let end = match bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            None => bytes.len(),
            Some(at) if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') => at + 2,
            Some(at) => at + 1,
        };
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line)
    })
}

/// The text without a byte order mark, which counts for no position.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn every_kind_of_break_ends_a_line() {
        let found: Vec<_> = lines("a\nb\r\nc\rd\n\r\re").collect();
        assert_eq!(found, ["a\n", "b\r\n", "c\r", "d\n", "\r", "\r", "e"]);
        assert_eq!(lines("").count(), 0);
    }
}
