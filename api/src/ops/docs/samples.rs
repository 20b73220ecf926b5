//! A call of an operation in several languages, made from its schema and its example.
//!
//! Invariant: what a sample sends satisfies the schema of the operation; a test holds each against it.

use std::fmt::Write as _;

use http::Method;
use pages::CodeSample;
use serde_json::Value;
use url::form_urlencoded;

use crate::call::answer::{FORM, JSON};
use crate::call::operation::Operation;
use crate::call::schema::takes;
use crate::call::spec::{Credential, Effect, ParamLocation, Scope};
use crate::ops::tools::TOOLS;

/// Id of whatever has one, in samples.
const ID: &str = "0197b3c0-0000-7000-8000-000000000001";
/// Texts of members that no schema gives away.
const TEXTS: [(&str, &str); 6] = [
    ("slug", "tide-gauges"),
    ("dataset", "tide-gauges"),
    ("q", "parquet zstd"),
    ("number", "7"),
    ("name", "part-0001.parquet"),
    ("kind", "knowledge"),
];
/// Optional members of a query that samples have, since a caller wants them first.
const SHOWN: [&str; 2] = ["q", "limit"];
/// Results that a sample asks for.
const LIMIT: u64 = 3;

/// Call with values for what it needs.
pub(super) struct SampleCall<'a> {
    operation: &'a Operation,
    url: String,
    /// Members of the path and the query, in the order of the schema.
    pub(super) members: Vec<(&'a str, Value)>,
    query: Vec<(&'a str, Value)>,
    /// Body as JSON; empty for none.
    body: String,
    /// Variable that has the credential.
    credential: Option<&'static str>,
}

/// Returns an operation's call as samples to copy, for a service at `base`.
pub(super) fn of(operation: &Operation, base: &str) -> Vec<CodeSample> {
    let call = SampleCall::of(operation, base);
    let sample = |id, label, code| CodeSample { id, label, code };
    let mut samples = vec![
        sample("op-curl", "curl", call.curl()),
        sample("op-python", "Python", call.python()),
        sample("op-typescript", "TypeScript", call.typescript()),
    ];
    if TOOLS.contains(&operation.spec.name) {
        samples.push(sample("op-mcp", "MCP", call.tool()));
    }
    samples
}

/// Returns true if a tool is at the endpoint without tools that spend, too.
pub(super) fn is_in_directory(operation: &Operation) -> bool {
    operation.spec.effect != Effect::Spend && operation.spec.scope != Scope::Spend
}

/// Returns a value that a member of this schema takes.
fn value(name: &str, schema: &Value) -> Value {
    if schema.get("format").is_some_and(|format| format == "uuid") {
        return ID.into();
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    if takes(schema, "integer") || takes(schema, "number") {
        let least = schema.get("minimum").and_then(Value::as_u64).unwrap_or(0);
        return if name == "limit" {
            LIMIT.max(least)
        } else {
            least.max(1)
        }
        .into();
    }
    if takes(schema, "boolean") {
        return true.into();
    }
    let known = TEXTS.iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, text)| *text).into()
}

/// Returns a value as text of a path or a query.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl<'a> SampleCall<'a> {
    /// Chooses the values of a call.
    pub(super) fn of(operation: &'a Operation, base: &str) -> Self {
        let spec = &operation.spec;
        let mut url = format!("{base}{}", spec.path);
        let (mut members, mut query) = (Vec::new(), Vec::new());
        for (name, schema) in operation.input.properties() {
            let location = spec.location_of(name);
            let is_needed = operation.input.requires(name) || SHOWN.contains(&name.as_str());
            if location == ParamLocation::Path {
                let value = value(name, schema);
                url = url.replace(&format!("{{{name}}}"), &text(&value));
                members.push((name.as_str(), value));
            } else if location == ParamLocation::Query && is_needed {
                let value = value(name, schema);
                members.push((name.as_str(), value.clone()));
                query.push((name.as_str(), value));
            }
        }
        if spec.method != Method::GET && !query.is_empty() {
            let pairs = query.drain(..).map(|(name, value)| (name, text(&value)));
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(pairs)
                .finish();
            url = format!("{url}?{query}");
        }
        let needs = |kind| spec.accepts(kind) && !spec.accepts(Credential::Anonymous);
        let credential = if needs(Credential::AgentKey) || needs(Credential::ClaimedKey) {
            Some("SLUICE_KEY")
        } else {
            needs(Credential::OperatorToken).then_some("SLUICE_TOKEN")
        };
        let lines: Vec<&str> = spec.example.lines().map(str::trim).collect();
        Self {
            operation,
            url,
            members,
            query,
            body: lines.join("\n"),
            credential,
        }
    }

    fn is_form(&self) -> bool {
        self.operation.spec.takes.first() == Some(&FORM)
    }

    /// Returns the members of a form.
    fn form(&self) -> Vec<(String, String)> {
        let members = serde_json::from_str::<serde_json::Map<String, Value>>(&self.body).unwrap_or_default();
        members
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect()
    }

    fn is_json(&self) -> bool {
        self.operation.content_type == JSON
    }

    /// Returns the body with lines that are indented.
    fn indented(&self, spaces: usize) -> String {
        self.body.replace('\n', &format!("\n{}", " ".repeat(spaces)))
    }

    fn curl(&self) -> String {
        let method = &self.operation.spec.method;
        let mut parts = vec![if self.query.is_empty() {
            format!("curl -s \"{}\"", self.url)
        } else {
            format!("curl -sG \"{}\"", self.url)
        }];
        // A body makes the method POST.
        if *method != Method::GET && (*method != Method::POST || self.body.is_empty()) {
            parts[0] = format!("curl -s -X {method} \"{}\"", self.url);
        }
        for (name, value) in &self.query {
            parts.push(format!("--data-urlencode \"{name}={}\"", text(value)));
        }
        if let Some(variable) = self.credential {
            parts.push(format!("-H \"Authorization: Bearer ${variable}\""));
        }
        if self.is_form() {
            let members = self.form();
            parts.extend(
                members
                    .iter()
                    .map(|(name, value)| format!("--data-urlencode '{name}={value}'")),
            );
        } else if !self.body.is_empty() {
            parts.push("-H 'Content-Type: application/json'".to_owned());
            // An apostrophe ends a text of the shell, and stands between two of them.
            parts.push(format!("-d '{}'", self.indented(4).replace('\'', "'\\''")));
        }
        parts.join(" \\\n  ")
    }

    fn python(&self) -> String {
        let mut code = String::new();
        if self.credential.is_some() {
            code.push_str("import os\n\n");
        }
        let method = self.operation.spec.method.as_str().to_ascii_lowercase();
        // Writing to a text does not fail.
        let _written = write!(
            code,
            "import httpx\n\nanswer = httpx.{method}(\n    \"{}\",\n",
            self.url
        );
        if !self.query.is_empty() {
            let pairs = self.query.iter().map(|(name, value)| format!("\"{name}\": {value}"));
            let _written = writeln!(code, "    params={{{}}},", pairs.collect::<Vec<_>>().join(", "));
        }
        if let Some(variable) = self.credential {
            let _written = writeln!(
                code,
                "    headers={{\"Authorization\": f\"Bearer {{os.environ['{variable}']}}\"}},"
            );
        }
        if !self.body.is_empty() {
            let argument = if self.is_form() { "data" } else { "json" };
            let _written = writeln!(code, "    {argument}={},", literal(&self.indented(8)));
        }
        let shown = if self.is_json() { "answer.json()" } else { "answer.text" };
        let _written = write!(code, "    timeout=60,\n)\nanswer.raise_for_status()\nprint({shown})");
        code
    }

    fn typescript(&self) -> String {
        let mut code = String::new();
        let target = if self.query.is_empty() {
            format!("\"{}\"", self.url)
        } else {
            let _written = writeln!(code, "const url = new URL(\"{}\");", self.url);
            for (name, value) in &self.query {
                let value = Value::from(text(value));
                let _written = writeln!(code, "url.searchParams.set(\"{name}\", {value});");
            }
            "url".to_owned()
        };
        let mut options = String::new();
        if self.operation.spec.method != Method::GET {
            let _written = writeln!(options, "  method: \"{}\",", self.operation.spec.method);
        }
        let mut headers: Vec<String> = Vec::new();
        if let Some(variable) = self.credential {
            headers.push(format!("Authorization: `Bearer ${{process.env.{variable}}}`"));
        }
        if self.is_form() {
            let _written = writeln!(options, "  body: new URLSearchParams({}),", self.indented(4));
        } else if !self.body.is_empty() {
            headers.push("\"Content-Type\": \"application/json\"".to_owned());
            let _written = writeln!(options, "  body: JSON.stringify({}),", self.indented(4));
        }
        if !headers.is_empty() {
            options = format!("  headers: {{ {} }},\n{options}", headers.join(", "));
        }
        if options.is_empty() {
            let _written = writeln!(code, "const answer = await fetch({target});");
        } else {
            let _written = writeln!(code, "const answer = await fetch({target}, {{\n{options}}});");
        }
        let shown = if self.is_json() { "json" } else { "text" };
        let _written = write!(
            code,
            "if (!answer.ok) throw new Error((await answer.json()).message);\nconsole.log(await answer.{shown}());"
        );
        code
    }

    fn tool(&self) -> String {
        let members = self.members.iter();
        let mut members: Vec<String> = members.map(|(name, value)| format!("\"{name}\": {value}")).collect();
        let inner = self.body.strip_prefix('{').and_then(|body| body.strip_suffix('}'));
        members.extend(
            inner
                .map(|inner| inner.trim().replace('\n', " "))
                .filter(|inner| !inner.is_empty()),
        );
        format!("{} {{{}}}", self.operation.spec.name, members.join(", "))
    }
}

/// Returns JSON as a literal of Python.
fn literal(json: &str) -> String {
    let mut code = String::with_capacity(json.len());
    let mut rest = json;
    let (mut is_text, mut is_escaped) = (false, false);
    while let Some(letter) = rest.chars().next() {
        if !is_text {
            let word = [("true", "True"), ("false", "False"), ("null", "None")];
            if let Some((word, python)) = word.into_iter().find(|(word, _)| rest.starts_with(word)) {
                code.push_str(python);
                rest = &rest[word.len()..];
                continue;
            }
        }
        if letter == '"' && !is_escaped {
            is_text = !is_text;
        }
        is_escaped = is_text && letter == '\\' && !is_escaped;
        code.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_json_are_words_of_python_outside_of_texts() {
        for (json, python) in [
            (r#"{"a": true, "b": null}"#, r#"{"a": True, "b": None}"#),
            (
                r#"{"a": "true \" null", "b": [false, 1]}"#,
                r#"{"a": "true \" null", "b": [False, 1]}"#,
            ),
            (r#"{"a": "\\", "b": null}"#, r#"{"a": "\\", "b": None}"#),
        ] {
            assert_eq!(literal(json), python);
        }
    }
}
