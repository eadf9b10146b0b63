//! How two texts differ, for people.

/// The lines that differ between what was expected and what came, with the lines around them.
/// Lines at the beginning and the end that are equal are left out.
pub fn lines(expected: &str, actual: &str) -> String {
    const AROUND: usize = 3;
    const SHOWN: usize = 60;
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let mut out = format!("at line {}:\n", head + 1);
    let mut show = |mark: char, lines: &[&str]| {
        for line in lines.iter().take(SHOWN) {
            out.push_str(&format!("{mark} {line}\n"));
        }
        if lines.len() > SHOWN {
            out.push_str(&format!("{mark} … {} more lines\n", lines.len() - SHOWN));
        }
    };
    show(' ', &old[head.saturating_sub(AROUND)..head]);
    show('-', &old[head..old.len() - tail]);
    show('+', &new[head..new.len() - tail]);
    let after = old.len() - tail;
    show(' ', &old[after..(after + AROUND).min(old.len())]);
    out
}
