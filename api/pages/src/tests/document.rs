use super::html::elements;
use crate::testing::samples;

fn terms() -> String {
    let samples = samples().unwrap();
    samples.into_iter().find(|sample| sample.name == "terms").unwrap().html
}

#[test]
fn markup_in_a_document_is_shown_as_text() {
    let page = terms();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("&lt;b onclick="));
    let elements = elements(&page);
    assert!(!elements.iter().any(|element| element.name == "b"));
}

#[test]
fn a_document_cannot_run_a_link_or_load_a_picture() {
    let page = terms();
    assert!(!page.contains("javascript:") && !page.contains("x.png"));
    let elements = elements(&page);
    let bad = elements.iter().find(|element| element.text == "a bad link").unwrap();
    assert_eq!(bad.get("href"), Some(""));
    let good = elements.iter().find(|element| element.text == "19 or older").unwrap();
    assert_eq!(good.get("href"), Some("https://sluice.example/terms"));
}

#[test]
fn the_title_of_a_document_stands_once() {
    let elements = elements(&terms());
    let titles: Vec<_> = elements
        .iter()
        .filter(|element| element.text == "Terms of Service")
        .collect();
    assert_eq!(titles.iter().filter(|element| element.name.starts_with('h')).count(), 1);
    let levels: Vec<&str> = elements
        .iter()
        .filter(|element| element.name.len() == 2 && element.name.starts_with('h') && element.name != "hr")
        .map(|element| element.name.as_str())
        .collect();
    assert_eq!(levels, ["h1", "h2", "h3", "h2", "h3"]);
}
