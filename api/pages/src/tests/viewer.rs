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

#[test]
fn a_filter_without_a_row_says_so_in_the_table_and_can_be_cleared() {
    let page = sample("dataset-rows-none");
    assert_eq!(texts(&page, "th", "place").len(), 1);
    let bars = texts(&page, "div", "lockbar");
    assert!(bars.len() == 1 && bars[0].contains("No row matches."), "{bars:?}");
    let clear = page
        .iter()
        .find(|element| element.text.trim() == "Clear the filters")
        .unwrap();
    assert_eq!(clear.get("href"), Some("/projects/tide-gauges/rows?version=1242"));
    // What keeps rows from being read is no empty answer.
    let failed = sample("dataset-rows-failed");
    assert_eq!(texts(&failed, "div", "lockbar").len(), 0);
}

#[test]
fn what_a_link_asks_for_is_not_shown_as_what_holds() {
    let asked = sample("dataset-rows-asked");
    let bars = texts(&asked, "div", "asked");
    assert!(bars.len() == 1 && bars[0].contains("not applied yet"), "{bars:?}");
    assert!(bars[0].contains("Apply") && bars[0].contains(" is "), "{bars:?}");
    assert_eq!(texts(&asked, "div", "on").len(), 0);
    let chosen = sample("dataset-rows-chosen");
    assert_eq!(
        (texts(&chosen, "div", "on").len(), texts(&chosen, "div", "asked").len()),
        (1, 0)
    );
}

/// Words of the pager of a sample, each with the number of rows before the page that it leads to.
fn pager(name: &str) -> Vec<(String, Option<u64>)> {
    let page = sample(name);
    let is_pager = |element: &Element| element.get("aria-label") == Some("Pages of rows");
    let nav = page.iter().position(is_pager).unwrap();
    let steps = page.iter().filter(|element| {
        let is_step = element.name == "button" || element.get("aria-current") == Some("page");
        is_step && element.around.contains(&nav)
    });
    steps
        .map(|step| {
            let offset = step.get("value").map(|offset| offset.parse().unwrap());
            (step.text.trim().to_owned(), offset)
        })
        .collect()
}

#[test]
fn pages_have_numbers_with_the_first_those_around_and_the_last() {
    let steps = |steps: &[(&str, Option<u64>)]| -> Vec<(String, Option<u64>)> {
        steps
            .iter()
            .map(|(words, offset)| ((*words).to_owned(), *offset))
            .collect()
    };
    // The tables of the samples have three rows, after which the next page begins.
    assert_eq!(
        pager("dataset-rows"),
        steps(&[
            ("1", None),
            ("2", Some(50)),
            ("3", Some(100)),
            ("16,789", Some(839_400)),
            ("Next", Some(3))
        ])
    );
    assert_eq!(
        pager("dataset-rows-chosen"),
        steps(&[
            ("Previous", Some(0)),
            ("1", Some(0)),
            ("2", None),
            ("3", Some(100)),
            ("Next", Some(53))
        ])
    );
    assert_eq!(
        pager("dataset-rows-middle"),
        steps(&[
            ("Previous", Some(419_700)),
            ("1", Some(0)),
            ("8,395", Some(419_700)),
            ("8,396", None),
            ("8,397", Some(419_800)),
            ("16,789", Some(839_400)),
            ("Next", Some(419_753))
        ])
    );
    assert!(pager("dataset-rows-none").is_empty());
}

#[test]
fn chosen_rows_are_offered_as_a_file_of_the_same_statement() {
    let page = sample("dataset-rows-chosen");
    let is_form = |element: &Element| element.get("action") == Some("/projects/tide-gauges/sql");
    let form = page.iter().position(is_form).unwrap();
    assert_eq!(page[form].get("method"), Some("post"));
    let fields = page.iter().filter(|element| element.around.contains(&form));
    let fields: Vec<_> = fields
        .filter_map(|field| Some((field.get("name")?, field.get("value")?)))
        .collect();
    let sql = "SELECT *\nFROM records\nWHERE &#34;gauge&#34; = &#39;Wick&#39;";
    for field in [
        ("q", sql),
        ("version", "1242"),
        ("limit", "1000"),
        ("file", "csv"),
        ("file", "ndjson"),
    ] {
        assert!(fields.contains(&field), "{field:?}: {fields:?}");
    }
    assert!(fields.iter().any(|(name, _)| *name == "form_token"));
    // What is not applied is not what the rows are.
    assert!(!sample("dataset-rows-asked").iter().any(is_form));
}

#[test]
fn a_proof_is_of_the_version_whose_rows_are_shown() {
    for (name, version) in [("dataset-locked-terms", "v883"), ("dataset-bought-terms", "v1,198")] {
        let page = sample(name);
        let proofs = page
            .iter()
            .filter(|element| element.name == "details" && element.get("class") == Some("proof"));
        let texts: Vec<&str> = proofs.map(|proof| proof.text.as_str()).collect();
        assert_eq!(texts.len(), 1, "{name}");
        assert!(texts[0].contains(&format!("{version} · fingerprint")), "{}", texts[0]);
    }
}

#[test]
fn figures_of_an_earlier_version_name_it() {
    let figures = |name| -> Vec<String> {
        let page = sample(name);
        let figures = page
            .iter()
            .position(|element| element.get("class") == Some("figs"))
            .unwrap();
        let parts = page.iter().filter(|element| element.around.contains(&figures));
        let parts = parts.filter(|element| element.name == "dt" || element.name == "dd");
        parts.map(|element| element.text.trim().to_owned()).collect()
    };
    let bought = figures("dataset-bought-terms");
    assert_eq!(&bought[..4], ["Rows in v1,198", "835,732", "Latest version", "1,242"]);
    assert!(bought.iter().any(|figure| figure == "Size of v1,198"), "{bought:?}");
    assert_eq!(&figures("dataset-own-terms")[..2], ["Rows in v1,198", "835,732"]);
    assert_eq!(
        &figures("dataset-locked-terms")[..4],
        ["Rows", "839,412", "Version", "1,242"]
    );
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
        assert!(
            page.contains("<span class=\"any\">by <a href=\"/agents/mooring-3\"><bdi>"),
            "{page}"
        );
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
    assert!(
        short
            .iter()
            .any(|element| element.name == "a" && element.text.starts_with("Buy v1,242 for $"))
    );
}

#[test]
fn rows_end_with_what_proves_their_version() {
    let page = sample("dataset-rows-chosen");
    let place = |class: &str, name: &str| {
        let is_it = |element: &Element| element.name == name && element.get("class") == Some(class);
        page.iter().position(is_it)
    };
    let (table, proof, pager) = (
        place("viewer", "table"),
        place("proof", "details"),
        place("pager", "nav"),
    );
    assert!(
        table.is_some() && table < proof && proof < pager,
        "{table:?} {proof:?} {pager:?}"
    );
    assert!(page[proof.unwrap()].text.contains("v1,242 · fingerprint"));
}

#[test]
fn cells_of_an_answer_have_the_class_of_their_column_and_times_read_as_in_the_viewer() {
    let (bars, line) = (sample("sql-bars"), sample("sql-line"));
    assert_eq!(texts(&bars, "td", "text").len(), 9);
    assert_eq!(texts(&bars, "td", "n").len(), 9);
    assert_eq!(texts(&bars, "td", "j")[0], "{&#34;a&#34;: [1, null]}");
    let first = line.iter().find(|element| element.name == "td").unwrap();
    assert_eq!(first.text, "2026-10-01 00:00:00");
    let zones = |page: &[Element]| {
        page.iter()
            .filter(|element| element.own == "UTC" && element.name == "small")
            .count()
    };
    assert_eq!((zones(&line), zones(&bars)), (1, 0));
}

#[test]
fn what_is_done_with_a_long_answer_stands_before_its_rows() {
    for (name, is_long) in [("sql-bars", false), ("sql-columns", true), ("sql-line", true)] {
        let page = sample(name);
        let place = |label: &str| {
            page.iter()
                .position(|element| element.get("aria-label") == Some(label))
                .unwrap()
        };
        let (rows, taken) = (place("Rows of the answer"), place("Take the answer with you"));
        assert_eq!(taken < rows, is_long, "{name}");
        assert_eq!(page[rows].get("class").unwrap().contains(" long"), is_long, "{name}");
        let labels = page
            .iter()
            .filter(|element| element.get("aria-label") == Some("Take the answer with you"));
        assert_eq!(labels.count(), 1, "{name}");
    }
}

#[test]
fn a_visitor_of_a_priced_dataset_learns_that_a_version_is_bought_before_it_is_asked() {
    let page = sample("sql-visitor-priced");
    let main = |name: &str| texts(&page, name, "primary");
    assert!(main("a").contains(&"Buy for $0.10 to run it"), "{:?}", main("a"));
    assert!(main("button").is_empty());
    assert!(texts(&page, "div", "note")[0].contains("an account buys it"));
    // Who has bought it signs in by the form, which keeps the statement.
    let sign_in = page.iter().find(|element| element.own == "Sign in to run it").unwrap();
    assert_eq!(sign_in.get("form"), Some("sql-form"));
    let free = sample("sql-visitor");
    assert_eq!(texts(&free, "button", "primary"), ["Sign in to run it"]);
    assert!(!free.iter().any(|element| element.own.contains("Buy for")));
}

#[test]
fn the_first_rows_lead_to_all_of_them_and_say_of_which_version_the_figures_are() {
    let page = sample("dataset-bought-terms");
    let all = page
        .iter()
        .find(|element| element.name == "a" && element.text.trim() == "All 835,732 rows")
        .unwrap();
    assert_eq!(all.get("href"), Some("/projects/tide-gauges/rows?version=1198"));
    assert!(
        pager("dataset-bought-terms").is_empty(),
        "pages of 50 rows do not begin after ten"
    );
    let says = |name: &str, words: &str| sample(name).iter().any(|element| element.own.trim() == words);
    let words = "The figures above the columns are those of v1,242; those of v1,198 are being made.";
    assert!(says("dataset-bought-terms", words));
    assert!(!says("dataset-rows", words));
    let schema = "Fixed when the dataset was made. Other fields are refused. The values are those of v1,240.";
    assert!(says("dataset-bought-terms", schema));
}

#[test]
fn a_sample_says_which_version_was_asked_for() {
    let page = sample("dataset-rows-offered");
    let words = texts(&page, "span", "soft").join(" ");
    assert!(words.contains("v1,240 was asked for."), "{words}");
}
