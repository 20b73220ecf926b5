//! Elements of a page, read strictly: every tag is closed, every attribute is quoted or bare.

/// Elements without an end.
const VOID: [&str; 6] = ["br", "hr", "img", "input", "link", "meta"];

/// Element with its attributes and everything that it is in.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    /// Places of the elements around it in the list, outermost first.
    pub(super) around: Vec<usize>,
    /// Text within it, with references as they stand.
    pub(super) text: String,
    /// Text directly within it.
    pub(super) own: String,
}

impl Element {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn is_in(&self, all: &[Self], name: &str) -> bool {
        self.around.iter().any(|place| all[*place].name == name)
    }
}

/// Reads the attributes of a tag.
fn attributes(mut rest: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start().trim_start_matches('/');
        if rest.is_empty() {
            return found;
        }
        let end = rest.find(|letter: char| letter == '=' || letter.is_whitespace());
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        let value = if let Some(quoted) = after.strip_prefix("=\"") {
            let (value, after) = quoted.split_once('"').expect("an attribute is closed");
            rest = after;
            value
        } else {
            assert!(!after.starts_with('='), "an attribute without quotes: {name}");
            rest = after;
            ""
        };
        found.push((name.to_owned(), value.to_owned()));
    }
}

/// Returns all elements of a page in the order of their begins.
pub(super) fn elements(page: &str) -> Vec<Element> {
    let mut all: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut rest = page
        .strip_prefix("<!doctype html>")
        .expect("a page begins with its type");
    while let Some((text, after)) = rest.split_once('<') {
        for place in &open {
            all[*place].text.push_str(text);
        }
        if let Some(place) = open.last() {
            all[*place].own.push_str(text);
        }
        assert!(!text.contains('>'), "a sign of a tag stands in a text: {text}");
        // A value may contain the sign that ends a tag.
        let mut quoted = false;
        let end = after.find(|letter| {
            quoted ^= letter == '"';
            letter == '>' && !quoted
        });
        let (tag, after) = after.split_at(end.expect("a tag is closed"));
        rest = &after[1..];
        if let Some(name) = tag.strip_prefix('/') {
            let place = open.pop().expect("an element is open");
            assert_eq!(all[place].name, name, "elements end in the order of their begins");
            continue;
        }
        let (name, list) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let is_closed = tag.ends_with('/') || VOID.contains(&name);
        all.push(Element {
            name: name.trim_end_matches('/').to_owned(),
            attributes: attributes(list),
            around: open.clone(),
            text: String::new(),
            own: String::new(),
        });
        if !is_closed {
            open.push(all.len() - 1);
        }
    }
    assert!(open.is_empty(), "every element ends");
    all
}
