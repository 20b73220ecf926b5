//! The whole way of a person in Chromium, from the first page to the file of an answer: by mouse, by the keyboard alone, and
//! without scripts.

use serde_json::json;
use tests::Answer;
use tests::browser::{By, Focus, Look, Page, SavedFile};
use tests::world::contribute;

use super::{profile, profiled, tied};
use crate::accounts::Site;
use crate::console::{browser, judge_answer};
use crate::sql_page::{Asker, project, window};

const TITLE: &str = "Levels of the water at the harbour";
/// Rows of the dataset, and those of [`STATION`].
const ROWS: &str = "133 rows";
const OF_STATION: &str = "44 rows";
const STATION: &str = "50%_off";
const STATEMENT: &str = "SELECT station, max(sample) AS most FROM records GROUP BY station ORDER BY most DESC LIMIT 1";
/// The file of the answer.
const ANSWER: &str = "station,most\n50%_off,129\n";
/// Stops of the keyboard after which something is not reached.
const STOPS: usize = 80;

/// Moves on by the keyboard, forward or back, until the focus is where a person wants it. Every stop can be seen.
fn tab_until(page: &Page, key: &str, is_there: impl Fn(&Focus) -> bool) {
    let mut passed = Vec::new();
    for _ in 0..STOPS {
        page.press(key);
        let focus = page.focused();
        assert!(focus.outlined || focus.tag == "body", "{focus:?}");
        if is_there(&focus) {
            return;
        }
        passed.push(focus.name);
    }
    panic!("not reached; passed {passed:?}");
}

fn tab_to(page: &Page, name: &str) {
    tab_until(page, "Tab", |focus| focus.name == name);
}

/// First cells of the first row that is shown.
fn first_row(page: &Page) -> String {
    page.read(By::Css("#rows tbody tr:first-child"))
}

fn has_answer(file: &SavedFile) {
    assert_eq!(file.name, "tides-v2-answer.csv");
    assert_eq!(String::from_utf8_lossy(&file.bytes), ANSWER);
}

/// A page of its own that a click or key loads where there are no scripts, and a part of it where there are.
fn led(page: &Page, scripts: bool, by_mouse: Option<By<'_>>) {
    match by_mouse {
        Some(by) if scripts => page.click(by),
        Some(by) => assert_eq!(page.submit(by).status, 200),
        None if scripts => page.press("Enter"),
        None => assert_eq!(page.enter("Enter").status, 200),
    }
}

fn by_mouse(site: &Site, page: &Page, scripts: bool) {
    let judged = |what: &str| {
        if scripts {
            judge_answer(page, what);
        }
    };
    page.goto(format!("{}/", site.http.base()));
    page.click(By::Label("Search datasets and knowledge"));
    page.type_keys("water at the harbour");
    assert_eq!(page.submit(By::Button("Search")).status, 200);
    judged("a dataset that was found");
    assert_eq!(page.submit(By::Link(TITLE)).status, 200);
    page.see(By::Css("#rows th:nth-child(2) svg.hist"));
    assert!(page.text().contains("133"), "{}", page.text());
    led(page, scripts, Some(By::Css("button[value='sample asc']")));
    page.see(By::Css("th[aria-sort='ascending']"));
    led(page, scripts, Some(By::Css("button[value='sample desc']")));
    page.see(By::Css("th[aria-sort='descending']"));
    assert!(first_row(page).contains("129"), "{}", first_row(page));
    // What came in the place of the first rows brings its own proof.
    assert_eq!(page.count(By::Css(".proof")), 1);
    page.pick(By::Css("select[name=f1]"), "station");
    page.click(By::Css("input[name=v1]"));
    page.type_keys(STATION);
    led(page, scripts, Some(By::Button("Filter")));
    page.see(By::Text(OF_STATION));
    assert!(first_row(page).contains(STATION), "{}", first_row(page));
    judged("rows that are sorted and filtered");
    // What was chosen is lifted again.
    led(page, scripts, Some(By::Css("button[aria-label='Remove filter 1']")));
    page.see(By::Text(ROWS));
    assert_eq!(page.submit(By::Link("SQL")).status, 200);
    page.click(By::Label("Statement"));
    page.type_keys(STATEMENT);
    assert_eq!(page.submit(By::Button("Run")).status, 200);
    page.see(By::Heading("1 row"));
    // The whole version may be downloaded from this page, too.
    has_answer(&page.download(By::Css("button[name=file][value=csv]")));
}

fn by_keyboard(site: &Site, page: &Page, scripts: bool) {
    page.goto(format!("{}/", site.http.base()));
    tab_until(page, "Tab", |focus| focus.tag == "input" && focus.name == "Search");
    page.type_keys("water at the harbour");
    assert_eq!(page.enter("Enter").status, 200);
    tab_to(page, TITLE);
    assert_eq!(page.enter("Enter").status, 200);
    for order in ["ascending", "descending"] {
        tab_to(page, "sample");
        led(page, scripts, None);
        page.see(By::Css(&format!("th[aria-sort='{order}']")));
    }
    assert!(first_row(page).contains("129"), "{}", first_row(page));
    tab_until(page, "Tab", |focus| {
        focus.tag == "select" && focus.name.starts_with("Column")
    });
    page.type_keys("station");
    tab_to(page, "Value");
    page.type_keys(STATION);
    led(page, scripts, None);
    page.see(By::Text(OF_STATION));
    assert!(first_row(page).contains(STATION), "{}", first_row(page));
    // With scripts the focus is at the rows that have come, behind the links of the dataset.
    let key = if scripts { "Shift+Tab" } else { "Tab" };
    tab_until(page, key, |focus| focus.tag == "a" && focus.name == "SQL");
    assert_eq!(page.enter("Enter").status, 200);
    tab_to(page, "Statement");
    page.type_keys(STATEMENT);
    tab_to(page, "Run");
    assert_eq!(page.enter("Enter").status, 200);
    page.see(By::Heading("1 row"));
    tab_until(page, "Tab", |focus| focus.tag == "code" && focus.name.contains("/sql?"));
    tab_to(page, "CSV of the answer");
    has_answer(&page.download_by("Enter"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_finds_sorts_filters_asks_and_downloads_by_mouse_by_keyboard_and_without_scripts() {
    let Some(browser) = browser("dataset-way") else { return };
    let (site, owner, other): (Site, Asker, Asker) = profiled().await;
    project(&owner, "tides", json!({"title": TITLE})).await;
    contribute(&owner.agent.http, "tides", &tied(130)).await;
    profile(&owner, "tides", 2).await;
    let is_found = |answer: &Answer| answer.text("/items/0/title").contains("harbour");
    site.http
        .comes_to_show("/search?q=water+at+the+harbour", is_found)
        .await;
    for scripts in [true, false] {
        for way in [by_mouse, by_keyboard] {
            let look = Look {
                scripts,
                ..Look::default()
            };
            let page = window(&site, &browser.person(look), &other);
            way(&site, &page, scripts);
            if scripts {
                assert_eq!(page.complaints(), Vec::<String>::new());
            }
        }
    }
}
