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

#[test]
fn a_proof_is_of_the_version_whose_rows_are_shown() {
    for (name, version) in [("dataset-locked-terms", "v883"), ("dataset-bought-terms", "v1,198")] {
        let page = sample(name);
        let proofs = page.iter().filter(|element| element.name == "details" && element.get("class") == Some("proof"));
        let texts: Vec<&str> = proofs.map(|proof| proof.text.as_str()).collect();
        assert_eq!(texts.len(), 1, "{name}");
        assert!(texts[0].contains(&format!("{version} · fingerprint")), "{}", texts[0]);
    }
}

#[test]
fn figures_of_an_earlier_version_name_it() {
    let figures = |name| -> Vec<String> {
        let page = sample(name);
        let figures = page.iter().position(|element| element.get("class") == Some("figs")).unwrap();
        let parts = page.iter().filter(|element| element.around.contains(&figures));
        let parts = parts.filter(|element| element.name == "dt" || element.name == "dd");
        parts.map(|element| element.text.trim().to_owned()).collect()
    };
    let bought = figures("dataset-bought-terms");
    assert_eq!(&bought[..4], ["Rows in v1,198", "835,732", "Latest version", "1,242"]);
    assert!(bought.iter().any(|figure| figure == "Size of v1,198"), "{bought:?}");
    assert_eq!(&figures("dataset-own-terms")[..2], ["Rows in v1,198", "835,732"]);
    assert_eq!(&figures("dataset-locked-terms")[..4], ["Rows", "839,412", "Version", "1,242"]);
    // The viewer shows any version, so its page names that of the figures.
    let rows = figures("dataset-rows");
    assert_eq!(&rows[..4], ["Rows in v1,242", "839,412", "Latest version", "1,242"]);
}

#[test]
fn a_dataset_names_its_maker_and_a_purchase_its_buyer() {
    let samples = samples().unwrap();
    let html = |name: &str| {
        let sample = samples.iter().find(|sample| sample.name == name);
        sample.unwrap().html.clone()
    };
    let (bought, own) = (html("dataset-bought-terms"), html("dataset-own-terms"));
    for page in [&bought, &own] {
        assert!(page.contains(">12 min <small>ago</small></time>"), "{page}");
        assert!(page.contains("<span class=\"any\">by <bdi>"), "{page}");
    }
    assert!(bought.contains("Bought by <bdi class=\"any\">"), "{bought}");
    assert!(bought.contains("</time> for $0.10."), "{bought}");
    assert!(!own.contains("Bought by"), "{own}");
    // The box counts the reviews of the page that it stands on.
    assert!(own.contains("<a href=\"#h-q\">Reviews and questions: "), "{own}");
    assert!(!html("empty-dataset-terms").contains("#h-q"));
}

#[test]
fn the_box_beside_a_tab_has_no_ways_to_pay_and_leads_to_them() {
    let ways = |page: &[Element]| page.iter().filter(|element| element.get("name") == Some("pay")).count();
    assert_eq!(ways(&sample("dataset-locked-terms")), 3);
    let short = sample("dataset-versions");
    assert_eq!(ways(&short), 0);
    assert!(short.iter().any(|element| element.name == "a" && element.text.starts_with("Buy v1,242 for $")));
}
