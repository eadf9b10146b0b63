//! Indentation that YAML forbids and everybody writes.
//!
//! ```yaml
//! args: [
//!   one,
//! ]
//! ```
//!
//! By the letter of YAML the bracket would have to be indented more than `args`; libyaml, and so
//! all Kubernetes tooling, does not mind. Inside brackets and quotes indentation has no meaning,
//! so where the parser objects, the lines that begin inside one are moved to the right and the
//! document is parsed again.

use crate::diag::lines;

/// A text with some lines moved to the right.
pub(super) struct Indented {
    pub text: String,
    /// By line of the text, from 0: by how many columns it was moved.
    pub pads: Vec<usize>,
}

/// Moves lines that begin inside brackets or quotes to the right of where those opened. `None`
/// when there is nothing to move.
pub(super) fn indent(text: &str) -> Option<Indented> {
    let mut scanner = Scanner::default();
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut pads = Vec::new();
    for line in lines(text) {
        let own = line.len() - line.trim_start_matches(' ').len();
        let pad = match scanner.inside {
            Some(column) if !line.trim().is_empty() => (column + 1).saturating_sub(own),
            _ => 0,
        };
        out.extend(std::iter::repeat_n(' ', pad));
        out.push_str(line);
        pads.push(pad);
        scanner.line(line.trim_end_matches(['\r', '\n']), own);
    }
    pads.iter().any(|pad| *pad > 0).then_some(Indented { text: out, pads })
}

/// Knows just enough of YAML to tell whether a line begins inside brackets or quotes.
#[derive(Default)]
struct Scanner {
    /// The column at which the outermost bracket or quote opened.
    inside: Option<usize>,
    brackets: usize,
    quote: Option<u8>,
    /// In a block scalar: the column of its parent; its text is further right.
    block_scalar: Option<usize>,
}

impl Scanner {
    fn line(&mut self, line: &str, indent: usize) {
        if let Some(parent) = self.block_scalar {
            if line.trim().is_empty() || indent > parent {
                return;
            }
            self.block_scalar = None;
        }
        let bytes = line.as_bytes();
        let mut at = 0;
        // The column of the last key or dash: what a block scalar would belong to.
        let mut parent = 0;
        while at < bytes.len() {
            at = if let Some(quote) = self.quote {
                self.quoted(bytes, at, quote)
            } else if self.brackets > 0 {
                self.bracketed(bytes, at)
            } else {
                match self.block(bytes, at, &mut parent) {
                    Some(next) => next,
                    None => return,
                }
            };
        }
    }

    fn quoted(&mut self, bytes: &[u8], at: usize, quote: u8) -> usize {
        match bytes[at] {
            b'\\' if quote == b'"' => at + 2,
            byte if byte == quote => {
                if quote == b'\'' && bytes.get(at + 1) == Some(&quote) {
                    return at + 2;
                }
                self.quote = None;
                if self.brackets == 0 {
                    self.inside = None;
                }
                at + 1
            }
            _ => at + 1,
        }
    }

    fn bracketed(&mut self, bytes: &[u8], at: usize) -> usize {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let starts = before.is_none_or(|b| b" \t[{,:".contains(&b));
        match bytes[at] {
            b'[' | b'{' => self.brackets += 1,
            b']' | b'}' => {
                self.brackets -= 1;
                if self.brackets == 0 {
                    self.inside = None;
                }
            }
            quote @ (b'"' | b'\'') if starts => self.quote = Some(quote),
            b'#' if before.is_none_or(|b| b == b' ' || b == b'\t') => return bytes.len(),
            _ => {}
        }
        at + 1
    }

    /// In block context, where a value may start. `None`: nothing of interest on this line.
    fn block(&mut self, bytes: &[u8], at: usize, parent: &mut usize) -> Option<usize> {
        let ends_word = |at: usize| bytes.get(at).is_none_or(|b| *b == b' ' || *b == b'\t');
        match bytes[at] {
            b' ' | b'\t' => Some(at + 1),
            b'#' => None,
            b'-' | b'?' if ends_word(at + 1) => {
                *parent = at;
                Some(at + 1)
            }
            b':' if ends_word(at + 1) => Some(at + 1),
            b'!' | b'&' => {
                let length = bytes[at..].iter().take_while(|b| !b.is_ascii_whitespace()).count();
                Some(at + length)
            }
            b'[' | b'{' => {
                (self.brackets, self.inside) = (1, Some(at));
                Some(at + 1)
            }
            quote @ (b'"' | b'\'') => {
                (self.quote, self.inside) = (Some(quote), Some(at));
                *parent = at;
                Some(at + 1)
            }
            b'|' | b'>' => {
                self.block_scalar = Some(*parent);
                None
            }
            _ => {
                // A plain scalar: a key when a colon ends it, else the end of what matters here.
                *parent = at;
                let colon = (at..bytes.len()).find(|&i| bytes[i] == b':' && ends_word(i + 1))?;
                Some(colon + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::indent;

    fn moved(text: &str) -> String {
        indent(text).map_or_else(|| text.to_owned(), |indented| indented.text)
    }

    #[test]
    fn lines_inside_brackets_and_quotes_are_moved() {
        assert_eq!(moved("a: [\n1,\n  ]\nb: 1\n"), "a: [\n    1,\n    ]\nb: 1\n");
        assert_eq!(moved("- k: {x: \"}\",\ny: 1}\n"), "- k: {x: \"}\",\n      y: 1}\n");
        assert_eq!(moved("a: 'x''\ny'\nb: 1\n"), "a: 'x''\n    y'\nb: 1\n");
        assert_eq!(moved("a: !t &x [ # ]\n]\n"), "a: !t &x [ # ]\n          ]\n");
    }

    #[test]
    fn everything_else_stays_where_it_is() {
        for text in [
            "a: b [\nc: 1\n",
            "a: |\n  [\n  x\nb: >-\n  'it\n\n  {\nc: 1\n",
            "- |\n [\n- a: |\n    {\n  b: 1\n",
            "a: it's\nb: 1 # [\nc: x#[\nd: \"\\\"[\"\n",
            "a: [1, 2]\nb: {c: d}\n",
        ] {
            assert!(indent(text).is_none(), "{text}");
        }
    }
}
