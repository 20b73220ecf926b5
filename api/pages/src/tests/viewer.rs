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
fn each_page_of_versions_is_numbered_and_leads_to_the_others() {
    let page = sample("dataset-versions");
    let nav = page
        .iter()
        .position(|element| element.get("class") == Some("pager"))
        .unwrap();
    let shown: Vec<_> = page
        .iter()
        .filter(|element| element.around.contains(&nav) && ["a", "span"].contains(&element.name.as_str()))
        .map(|element| (element.text.trim(), element.get("href").unwrap_or_default()))
        .collect();
    let path = "/projects/tide-gauges/versions";
    let below = |version: u64| format!("{path}?before={version}");
    let (second, fourth, last) = (below(1_223), below(1_183), below(3));
    let expected = [
        ("v1,202 to v1,183 of 1,242", ""),
        ("Later", second.as_str()),
        ("1", path),
        ("2", &second),
        ("3", ""),
        ("4", &fourth),
        ("…", ""),
        ("63", &last),
        ("Earlier", &fourth),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_file_of_a_version_has_a_short_name_and_the_whole_one_as_title() {
    let page = sample("dataset-version");
    let whole = "part-00000000000000001024-0198c2f4-5b7a-7c31-9e0d-6a4f1b2c3d4e-1.parquet";
    let name = page.iter().find(|element| element.get("title") == Some(whole)).unwrap();
    assert_eq!(name.text.trim(), "part-1024…2c3d4e-1.parquet");
    let hash = "59e0a3cc".repeat(8);
    let hash = page.iter().find(|element| element.get("title") == Some(&hash)).unwrap();
    assert_eq!(hash.text.trim(), "59e0a3cc59e0a3cc…");
}

#[test]
fn the_first_rows_of_a_version_lead_to_all_of_them_and_name_one_version_and_agent_once() {
    let page = sample("dataset-version");
    let all = page
        .iter()
        .find(|element| element.text.trim() == "All of them" && element.name == "a");
    assert_eq!(
        all.and_then(|link| link.get("href")),
        Some("/projects/tide-gauges/versions/1239?from=1238&#38;offset=0")
    );
    let heads = page
        .iter()
        .filter(|element| element.name == "th" && element.text.trim() == "By");
    assert_eq!(heads.count(), 0);
    assert_eq!(texts(&page, "td", "ln"), ["84+"]);
    let label = page
        .iter()
        .find(|element| element.own.starts_with("1 to 1 of 84 new rows"));
    assert!(label.unwrap().text.contains(", from v1,239, by "));
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
