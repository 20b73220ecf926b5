//! The page in Chromium: by mouse, by the keyboard alone, and without scripts.

use serde_json::json;
use tests::browser::{By, Look, Page, Person};

use super::{Asker, project, sql};
use crate::accounts::Site;
use crate::console::{browser, judge_answer};

/// Opens the window of somebody who is signed in.
pub(crate) fn window(site: &Site, person: &Person, asker: &Asker) -> Page {
    let secure = site.http.base().replace("http:", "https:");
    person.put_cookie(&secure, "__Host-sluice", &asker.session);
    person.page()
}

/// Moves on by the keyboard until the focus is on what has this name.
fn tab_to(page: &Page, name: &str) {
    for _ in 0..60 {
        page.press("Tab");
        let focus = page.focused();
        assert!(focus.outlined || focus.tag == "body", "{focus:?}");
        if focus.name == name {
            return;
        }
    }
    panic!("{name} is not reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_asks_by_mouse_by_keyboard_and_without_scripts() {
    let Some(browser) = browser("sql") else { return };
    let site = Site::start(None, |options| options).await;
    let asker = Asker::new(&site, "ada@example.org").await;
    project(&asker, "tides", json!({})).await;
    let url = format!("{}{}", site.http.base(), sql("tides"));
    for scripts in [true, false] {
        let look = Look {
            scripts,
            ..Look::default()
        };
        let page = window(&site, &browser.person(look), &asker);
        page.goto(&url);
        // By mouse: an example, then the button.
        assert_eq!(page.submit(By::Link("Rows by station")).status, 200);
        assert_eq!(page.submit(By::Button("Run")).status, 200);
        page.see(By::Heading("1 row"));
        assert!(page.text().contains("wick"), "{}", page.text());
        if scripts {
            judge_answer(&page, "an answer without a chart");
        }
        // By keyboard: a statement of one's own.
        page.goto(&url);
        tab_to(&page, "Statement");
        page.type_keys("SELECT sample AS bar, station || sample AS word FROM records ORDER BY 1");
        if scripts {
            assert_eq!(page.enter("Control+Enter").status, 200);
        } else {
            tab_to(&page, "Run");
            assert_eq!(page.enter("Enter").status, 200);
        }
        page.see(By::Heading("3 rows"));
        assert_eq!(page.count(By::Css(".hbars rect")), 3);
        if scripts {
            judge_answer(&page, "an answer with bars");
        }
        // A slip is shown in its place, and mended there.
        page.goto(&url);
        page.fill(By::Label("Statement"), "SELECT smaple\nFROM records");
        assert_eq!(page.submit(By::Button("Run")).status, 400);
        page.see(By::Text("Line 1, character 8"));
        if scripts {
            judge_answer(&page, "an error in a statement");
            page.click(By::Link("Line 1, character 8"));
            page.type_keys("sample");
            assert_eq!(page.enter("Control+Enter").status, 200);
            page.see(By::Heading("3 rows"));
            // The name of a column goes to the cursor.
            page.goto(&url);
            page.fill(By::Label("Statement"), "SELECT count(*) FROM records GROUP BY ");
            page.click(By::Css("a[data-insert=station]"));
            assert_eq!(page.enter("Control+Enter").status, 200);
            page.see(By::Heading("1 row"));
        }
    }
    // A line over times, in every look.
    let page = window(&site, &browser.person(Look::default()), &asker);
    page.goto(&url);
    let times = "SELECT now() + sample * INTERVAL '1 day' AS day, sample FROM records";
    page.fill(By::Label("Statement"), times);
    assert_eq!(page.submit(By::Button("Run")).status, 200);
    assert_eq!(page.count(By::Css(".chart .line")), 1);
    judge_answer(&page, "an answer with a line");
}
