//! Durations as Go writes them.

use std::time::Duration;

/// Reads a Go duration (`1h2m`, `1.5s`, `100ms`, `0`). Negative ones and unknown units give
/// `None`, as does anything that does not fit.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit_len = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        nanos = nanos.checked_add(scaled(number, unit_nanos(unit)?)?)?;
        rest = after;
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    let rest = u32::try_from(nanos % 1_000_000_000).ok()?;
    // Go's durations end at 292 years.
    (nanos <= i64::MAX as u128).then(|| Duration::new(seconds, rest))
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3600 * 1_000_000_000,
        _ => return None,
    })
}

/// `number` times `unit`, without floating point: `1.5` of 1,000 is 1,500.
fn scaled(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(unit)?;
    // Digits below a nanosecond are dropped, as Go does.
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        total = total.checked_add(place.checked_mul(u128::from(digit - b'0'))?)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::parse_duration;
    use std::time::Duration;

    #[test]
    fn reads_what_go_reads() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("5s", 5_000),
            ("1.5s", 1_500),
            ("100ms", 100),
            ("1h2m", 3_720_000),
            ("1m0.5s", 60_500),
            (".5s", 500),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in ["", "5", "-5s", "5x", "s", "1..5s", ".s", "5 s", "999999999h"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
