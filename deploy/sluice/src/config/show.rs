//! The merged configuration as a file: the text of the defaults with the values in force.
//!
//! Invariant: the value of a key whose comment contains the word `Secret` is masked.

use serde_json::{Map, Value};

/// Replaces every value of `template` with the one of `values`.
///
/// The template has one key per line, in sections of one level.
pub(super) fn show(template: &str, values: &Value) -> String {
    let mut shown = String::with_capacity(template.len());
    let mut section = "";
    let mut secret = false;
    for line in template.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        } else if let Some(comment) = line.strip_prefix('#') {
            // A comment may have several lines, so the mark holds until the next key.
            secret |= comment.contains("Secret");
        } else if let Some((key, _)) = line.split_once(" = ") {
            let value = match &values[section][key] {
                // An empty secret is shown as empty, so that a reader sees that it is not set.
                Value::String(text) if text.is_empty() => "\"\"".to_owned(),
                // The mask has one length, so that it does not show the length of the secret.
                _ if secret => "\"…\"".to_owned(),
                // Strings, numbers, booleans and arrays of them are written in JSON as in TOML.
                value => value.to_string(),
            };
            shown.extend([key, " = ", &value, "\n"]);
            secret = false;
            continue;
        }
        shown.extend([line, "\n"]);
    }
    shown
}

/// Returns a shown file as JSON: an object with a member for each section.
pub(super) fn json(shown: &str) -> Value {
    let mut sections: Map<String, Value> = Map::new();
    let mut section = "";
    for line in shown.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        } else if !line.starts_with('#')
            && let Some((key, value)) = line.split_once(" = ")
        {
            // Every value is written in JSON.
            let value = serde_json::from_str(value).unwrap_or(Value::Null);
            let members = sections.entry(section).or_insert_with(|| Map::new().into());
            members[key] = value;
        }
    }
    sections.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_replaced_and_secrets_masked() {
        let template = "# About.\n\n[a]\n# Plain.\nx = 1\n# Secret. The key.\ny = \"\"\n[b]\nx = \"\"\n";
        let values = json!({"a": {"x": 2, "y": "hush"}, "b": {"x": "say \"hi\""}});
        assert_eq!(
            show(template, &values),
            "# About.\n\n[a]\n# Plain.\nx = 2\n# Secret. The key.\ny = \"…\"\n[b]\nx = \"say \\\"hi\\\"\"\n"
        );
        assert_eq!(
            json(&show(template, &values)),
            json!({"a": {"x": 2, "y": "…"}, "b": {"x": "say \"hi\""}})
        );
        let unset = json!({"a": {"x": 2, "y": ""}, "b": {"x": ""}});
        assert!(
            show(template, &unset).contains("y = \"\"\n"),
            "a secret that is not set shows as such"
        );
    }
}
