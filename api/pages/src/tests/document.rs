use super::html::elements;
use crate::document::RenderedMarkdown;
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
        .filter(|element| !element.is_in(&elements, "footer"))
        .map(|element| element.name.as_str())
        .collect();
    assert_eq!(levels, ["h1", "h2", "h3", "h2", "h3"]);
}

#[test]
fn blocks_are_nested_to_a_depth_that_a_reader_can_follow() {
    let blocks = |markdown: &str, name: &str| {
        let html = RenderedMarkdown::of(markdown).to_string();
        (html.matches(&format!("<{name}>")).count(), html)
    };
    let (deep, html) = blocks(&format!("{}words", "> ".repeat(40)), "blockquote");
    assert!(deep == 32 && html.contains("&gt; ") && html.contains("words"), "{html}");
    for marker in ["- ", "1. "] {
        let (deep, html) = blocks(&format!("{}words", marker.repeat(40)), "li");
        assert!(
            deep == 32 && html.contains(marker.trim()) && html.contains("words"),
            "{html}"
        );
    }
    // A line that separates is none of them.
    assert!(RenderedMarkdown::of(&"- ".repeat(40)).to_string().contains("<hr"));
    assert_eq!(blocks("> > a\n> > b\n", "blockquote").0, 2);
}

#[test]
fn a_document_that_fills_a_page_has_places_and_code_to_copy() {
    let text = "## Keys\n\n[here](#keys-1)\n\n```sh\na > b\n```\n\n## Keys\n\n| A | B |\n|-|-|\n| 1 | 2 |\n\n#### *Deep* `x`!\n\n<b>\n";
    let (rendered, headings) = RenderedMarkdown::with_places(text);
    let html = rendered.to_string();
    let listed: Vec<_> = headings
        .iter()
        .map(|heading| (heading.id.as_str(), heading.text.as_str()))
        .collect();
    assert_eq!(listed, [("keys", "Keys"), ("keys-1", "Keys")]);
    for part in [
        "<h2 id=\"keys-1\">",
        "<pre id=\"code-1\" tabindex=\"0\" aria-label=\"Example 1\"><code>a &gt; b\n</code></pre>",
        "data-copy=\"code-1\"",
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Table 1\"><table>",
        "<h3 id=\"deep-x\">",
        "&lt;b&gt;",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
}
