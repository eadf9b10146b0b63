//! Envoy's matchers: does a request fit.

use super::{Unknown, array, only, text};
use regex::Regex;
use serde_json::Value;

/// What the matchers look at.
pub struct Asked<'r> {
    pub path: &'r str,
    pub query: Vec<(&'r str, &'r str)>,
    /// In lower case, pseudo headers among them.
    pub headers: Vec<(String, String)>,
}

impl Asked<'_> {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

/// Whether a route's match fits.
pub fn route_match(wanted: &Value, asked: &Asked<'_>) -> Result<bool, Unknown> {
    only(
        "match",
        wanted,
        &[
            "prefix",
            "path",
            "safe_regex",
            "path_separated_prefix",
            "case_sensitive",
            "headers",
            "query_parameters",
        ],
    )?;
    if !path(wanted, asked.path)? {
        return Ok(false);
    }
    for matcher in array(wanted, "headers") {
        if !header(matcher, asked)? {
            return Ok(false);
        }
    }
    for matcher in array(wanted, "query_parameters") {
        if !query(matcher, asked)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn path(wanted: &Value, path: &str) -> Result<bool, Unknown> {
    let folds = wanted["case_sensitive"] == false;
    let fold = |s: &str| if folds { s.to_ascii_lowercase() } else { s.to_owned() };
    if let Some(exact) = wanted["path"].as_str() {
        return Ok(fold(path) == fold(exact));
    }
    if let Some(prefix) = wanted["prefix"].as_str() {
        return Ok(fold(path).starts_with(&fold(prefix)));
    }
    if let Some(prefix) = wanted["path_separated_prefix"].as_str() {
        let rest = fold(path);
        let rest = rest.strip_prefix(&fold(prefix));
        return Ok(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    }
    match wanted.get("safe_regex") {
        Some(pattern) => regex(pattern, path),
        None => Err("a match without a path".to_owned()),
    }
}

/// Whether a header matcher fits.
pub fn header(wanted: &Value, asked: &Asked<'_>) -> Result<bool, Unknown> {
    const KNOWN: &[&str] =
        &["name", "string_match", "present_match", "invert_match", "treat_missing_header_as_empty"];
    only("header", wanted, KNOWN)?;
    let inverted = wanted["invert_match"] == true;
    let value = asked.header(text(wanted, "name"));
    if let Some(present) = wanted["present_match"].as_bool() {
        return Ok((value.is_some() == present) != inverted);
    }
    let empty = wanted["treat_missing_header_as_empty"] == true;
    let Some(value) = value.or(empty.then_some("")) else { return Ok(false) };
    match wanted.get("string_match") {
        Some(matcher) => Ok(string(matcher, value)? != inverted),
        None => Ok(!inverted),
    }
}

fn query(wanted: &Value, asked: &Asked<'_>) -> Result<bool, Unknown> {
    only("query_parameter", wanted, &["name", "string_match", "present_match"])?;
    let name = text(wanted, "name");
    // Envoy looks at the first of several.
    let value = asked.query.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    match (wanted.get("string_match"), value) {
        (Some(matcher), Some(value)) => string(matcher, value),
        (Some(_), None) => Ok(false),
        (None, value) => Ok(value.is_some() == wanted["present_match"].as_bool().unwrap_or(true)),
    }
}

/// Whether a text fits.
pub fn string(wanted: &Value, value: &str) -> Result<bool, Unknown> {
    const KNOWN: &[&str] = &["exact", "prefix", "suffix", "contains", "safe_regex", "ignore_case"];
    only("string_match", wanted, KNOWN)?;
    if let Some(pattern) = wanted.get("safe_regex") {
        return regex(pattern, value);
    }
    let folds = wanted["ignore_case"] == true;
    let fold = |s: &str| if folds { s.to_ascii_lowercase() } else { s.to_owned() };
    let value = fold(value);
    let fits =
        |key: &str, test: &dyn Fn(&str) -> bool| wanted[key].as_str().map(|text| test(&fold(text)));
    fits("exact", &|text| value == text)
        .or_else(|| fits("prefix", &|text| value.starts_with(text)))
        .or_else(|| fits("suffix", &|text| value.ends_with(text)))
        .or_else(|| fits("contains", &|text| value.contains(text)))
        .ok_or_else(|| "a string_match without a pattern".to_owned())
}

/// Whether the whole text fits the expression.
pub fn regex(pattern: &Value, value: &str) -> Result<bool, Unknown> {
    Ok(compiled(&format!("^(?:{})$", text(pattern, "regex")))?.is_match(value))
}

/// `RegexMatchAndSubstitute`: every occurrence; `\1` names a group.
pub fn substitute(rewrite: &Value, value: &str) -> Result<String, Unknown> {
    let pattern = compiled(text(&rewrite["pattern"], "regex"))?;
    let substitution = text(rewrite, "substitution").replace('$', "$$");
    let groups = Regex::new(r"\\(\d)").map_err(|e| e.to_string())?;
    let substitution = groups.replace_all(&substitution, "$${${1}}");
    Ok(pattern.replace_all(value, &*substitution).into_owned())
}

fn compiled(pattern: &str) -> Result<Regex, Unknown> {
    Regex::new(pattern).map_err(|error| error.to_string())
}
