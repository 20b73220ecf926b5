use super::html::{Element, elements};
use crate::testing::samples;

fn sample(name: &str) -> Vec<Element> {
    let samples = samples().unwrap();
    let sample = samples.iter().find(|sample| sample.name == name);
    elements(&sample.unwrap().html)
}

/// Texts of the elements of a class.
fn texts<'a>(page: &'a [Element], name: &str, class: &str) -> Vec<&'a str> {
    let found = page.iter().filter(|element| {
        let mut classes = element.get("class").unwrap_or_default().split(' ');
        element.name == name && classes.any(|found| found == class)
    });
    found.map(|element| element.text.trim()).collect()
}

fn links(page: &[Element]) -> impl Iterator<Item = &str> {
    page.iter().filter_map(|element| element.get("href"))
}

#[test]
fn the_rows_of_a_sample_are_numbered_and_lead_nowhere() {
    let page = sample("dataset-locked-terms");
    assert_eq!(texts(&page, "td", "place"), ["1", "2", "3"]);
    assert_eq!(links(&page).filter(|link| link.contains("row=")).count(), 0);
    let read = sample("dataset-rows");
    assert_eq!(links(&read).filter(|link| link.contains("row=")).count(), 3);
}

#[test]
fn json_that_was_cut_is_shown_as_json() {
    let page = sample("dataset-locked-terms");
    assert_eq!(texts(&page, "td", "j")[0], "{&#34;type&#34;:&#34;be…");
}

#[test]
fn a_filter_by_the_empty_text_is_told_from_one_without_a_value() {
    let page = sample("dataset-rows-none");
    let tags = texts(&page, "span", "tag");
    assert!(tags.iter().any(|tag| tag.ends_with(" is empty text")), "{tags:?}");
    assert!(tags.iter().any(|tag| tag.ends_with(" is null")), "{tags:?}");
}

#[test]
fn the_viewer_carries_its_token_and_the_same_question_in_sql() {
    let page = sample("dataset-rows-chosen");
    let token = page.iter().find(|element| element.get("name") == Some("run")).unwrap();
    assert_eq!(token.get("value"), Some("cm93cy10b2tlbg"));
    let form = page
        .iter()
        .position(|element| element.get("id") == Some("view"))
        .unwrap();
    assert!(token.around.contains(&form));
    assert!(links(&page).any(|link| link == "/projects/tide-gauges/sql?version=1242"));
}

#[test]
fn a_reader_led_by_another_site_is_offered_the_rows() {
    let page = sample("dataset-rows-offered");
    let offer = page
        .iter()
        .find(|element| element.text.trim() == "Show all rows")
        .unwrap();
    assert_eq!(offer.get("href"), Some("/projects/tide-gauges/rows?version=1242"));
    assert!(!page.iter().any(|element| element.get("id") == Some("view")));
}
