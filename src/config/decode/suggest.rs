//! "Did you mean …": the nearest of the names that would have been right.

/// The candidate that a misspelt name was probably meant to be.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let wanted = normal(name);
    // One slip in a short name, more in a long one.
    let limit = (wanted.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &normal(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Case and separators are the most common slips, so they cost nothing.
fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_recognised() {
        let fields = ["timeout", "retries", "route", "match", "corsPolicy"];
        assert_eq!(nearest("timeot", fields), Some("timeout"));
        assert_eq!(nearest("rout", fields), Some("route"));
        assert_eq!(nearest("cors_policy", fields), Some("corsPolicy"));
        assert_eq!(nearest("Match", fields), Some("match"));
    }

    #[test]
    fn strangers_are_not() {
        assert_eq!(nearest("sidecar", ["timeout", "route"]), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(nearest("日本", ["route"]), None);
    }
}
