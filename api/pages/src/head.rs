//! What the head of a page tells search engines and other sites about it.
//!
//! Invariant: no text of a page ends the element that holds its data.

use std::fmt;

use askama::filters::HtmlSafe;
use serde_json::{Value, json};

/// Most characters of a description: more than that is cut where it is shown.
const MAX_SUMMARY_CHARS: usize = 160;

/// Data about a page in the words of schema.org, as JSON-LD.
#[derive(Clone, Debug)]
pub struct LinkedData(Value);

// `Display` writes every sign that HTML has a meaning for as an escape of JSON.
impl HtmlSafe for LinkedData {}

impl LinkedData {
    /// Creates the data of a thing of a type of schema.org. What has no value is left out.
    pub fn new(kind: &str, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let mut data = json!({"@context": "https://schema.org", "@type": kind});
        for (name, value) in fields {
            if !value.is_null() {
                data[name] = value;
            }
        }
        Self(data)
    }
}

impl fmt::Display for LinkedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All of these can stand only within the strings of JSON, where an escape means the same.
        for sign in self.0.to_string().chars() {
            match sign {
                '<'
                | '>'
                | '&'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' => write!(f, "\\u{:04x}", u32::from(sign))?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

/// Returns the beginning of a text as one line, fit for a description.
pub(crate) fn summary(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.chars().count() + word.chars().count() >= MAX_SUMMARY_CHARS {
            let rest = MAX_SUMMARY_CHARS.saturating_sub(line.chars().count() + 1);
            // A word that alone is too long is cut, and every other one left out.
            if line.is_empty() {
                line.extend(word.chars().take(rest));
            }
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{LinkedData, summary};

    #[test]
    fn data_cannot_end_its_element_and_means_the_same() {
        let title = "</script><script>alert(1)</script>&amp;\u{202e}\u{2028}";
        let data = LinkedData::new("Dataset", [("name", json!(title)), ("url", json!(null))]);
        let text = data.to_string();
        assert!(!text.contains(['<', '>', '&', '\u{202e}', '\u{2028}']), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read,
            json!({"@context": "https://schema.org", "@type": "Dataset", "name": title})
        );
    }

    #[test]
    fn a_summary_ends_at_a_word() {
        assert_eq!(summary(" Tide \n levels\t, hourly "), "Tide levels , hourly");
        let long = summary(&"word ".repeat(100));
        assert!(long.ends_with("word…") && long.chars().count() <= 160, "{long}");
        assert_eq!(summary(&"w".repeat(500)).chars().count(), 160);
        assert_eq!(summary(""), "");
    }
}
