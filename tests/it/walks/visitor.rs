//! A visitor understands the service, searches and looks at rows.

use serde_json::json;
use tests::browser::{By, Look};
use tests::world::contribute;

use super::{click, follow};
use crate::console::{artefacts, browser, judge_answer};
use crate::dataset_pages::{profile, profiled, tied};
use crate::moderation::published;
use crate::sql_page::project;

const TITLE: &str = "Levels of the water at the harbour";
const PHONE: Look = Look {
    width: 390,
    dark: false,
    scripts: true,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_understands_searches_and_looks_at_rows() {
    let Some(browser) = browser("walk-visitor") else { return };
    let (site, owner, _) = profiled().await;
    let own = json!({"title": TITLE, "tags": ["harbour", "tides"]});
    project(&owner, "tides", own).await;
    contribute(&owner.agent.http, "tides", &tied(130)).await;
    profile(&owner, "tides", 2).await;
    let unit = published(&owner.agent.http).await;
    site.http
        .comes_to_show("/search?kind=dataset", |answer| answer.body["total"] == 1)
        .await;
    site.http
        .comes_to_show("/search?kind=unit", |answer| answer.body["total"] == 1)
        .await;
    let base = site.http.base();

    // What is sold, for whom, and what it is like: on the first page, before anything is scrolled or asked.
    let page = browser.person(Look::default()).page();
    page.goto(format!("{base}/"));
    let said = page.text();
    for words in [
        "is a marketplace",
        "datasets",
        "knowledge",
        TITLE,
        "You need data",
        "You build agents",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(page.count(By::Css(".hero table tbody tr")), 4, "sampled rows");
    assert_eq!(page.count(By::Css(&format!(".hero a[href='/units/{unit}']"))), 1);
    judge_answer(&page, "the first page");

    // A slash goes to the search; what is typed is suggested, and an arrow and Enter lead to the dataset.
    page.press("/");
    assert_eq!(page.focused().name, "Search");
    page.type_keys("harbour");
    page.see(By::Css(".top .sug [role=option]:nth-of-type(2) mark"));
    page.press("ArrowDown");
    page.press("ArrowDown");
    assert_eq!(page.enter("Enter").status, 200);
    assert_eq!(page.url(), format!("{base}/projects/tides"));
    assert_eq!(page.count(By::Css("script[type='application/ld+json']")), 1);
    assert_eq!(page.complaints(), Vec::<String>::new());

    // The same without the suggestions: from the first page to the results, and on by what narrows them.
    page.goto(format!("{base}/"));
    page.click(By::Label("Search datasets and knowledge"));
    page.type_keys("the harbour");
    click(&page, By::Button("Search"), "results");
    assert_eq!(
        page.read(By::Css(".hit h2 mark")),
        "harbour",
        "a common word is not marked"
    );
    page.pick(By::Css("select[name=sort]"), "newest");
    page.see(By::Css("select[name=sort]:has(option[value=newest][selected])"));
    click(&page, By::Css(".tags a[href*='tides']"), "datasets with a tag");
    assert_eq!(page.count(By::Css(".hit")), 1);
    click(&page, By::Link(TITLE), "the dataset");
    page.see(By::Css("#rows tbody tr:first-child"));
    assert!(page.text().contains("Rows a day"), "{}", page.text());

    // What nobody sells leads to the board, with the question filled in.
    page.goto(format!("{base}/find?q=xyzzyx+zzyzx"));
    judge_answer(&page, "nothing found");
    click(&page, By::Link("Ask the board"), "the board with a question");
    assert!(page.read(By::Css("#say")).contains("“xyzzyx zzyzx”"), "{}", page.text());

    // A page that there is not offers a search for what its address names.
    assert_eq!(page.goto(format!("{base}/projects/tide-levels")).status, 404);
    assert_eq!(page.attribute(By::Css("#q"), "value").as_deref(), Some("tide levels"));
    judge_answer(&page, "a page that is not there");

    // On a phone the menu leads on, and colours are chosen and given back.
    let phone = browser.person(PHONE).page();
    phone.goto(format!("{base}/"));
    phone.click(By::Css(".menu summary"));
    follow(&phone, By::Css(".menu a[href='/units']"), "the list of units");
    assert_eq!(phone.count(By::Css(".hit")), 1);
    phone.click(By::Css(".foot button[value=dark]"));
    assert_eq!(phone.attribute(By::Css("html"), "data-theme").as_deref(), Some("dark"));
    phone.click(By::Css(".foot button[value=system]"));
    assert_eq!(phone.attribute(By::Css("html"), "data-theme"), None);
    phone.picture(&artefacts("walk-visitor").join("knowledge-390.png"));
    assert_eq!(phone.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_without_scripts_comes_as_far() {
    let Some(browser) = browser("walk-visitor-plain") else {
        return;
    };
    let (site, owner, _) = profiled().await;
    let hostile = "<img src=x onerror=alert(1)> levels at the harbour";
    project(&owner, "tides", json!({"title": hostile, "tags": ["harbour"]})).await;
    contribute(&owner.agent.http, "tides", &tied(130)).await;
    profile(&owner, "tides", 2).await;
    site.http
        .comes_to_show("/search?q=harbour", |answer| answer.body["total"] == 1)
        .await;
    let base = site.http.base();
    let page = browser
        .person(Look {
            scripts: false,
            ..Look::default()
        })
        .page();
    page.goto(format!("{base}/"));
    page.fill(
        By::Label("Search datasets and knowledge"),
        "levels <img onerror=alert(1)>",
    );
    follow(&page, By::Button("Search"), "results");
    assert_eq!(page.count(By::Css("main img, main script")), 0);
    page.pick(By::Css("select[name=sort]"), "cheapest");
    follow(&page, By::Button("Apply"), "results in another order");
    assert_eq!(page.count(By::Css("option[value=cheapest][selected]")), 1);
    page.check(By::Css("input[name=kind][value=dataset]"));
    follow(&page, By::Button("Apply"), "datasets alone");
    follow(&page, By::Css(".tags a"), "datasets with a tag");
    follow(&page, By::Css(".hit h2 a"), "the dataset");
    page.see(By::Css("#rows tbody tr:first-child"));
    // Colours are a form, which leads back to the page.
    let here = page.url();
    follow(&page, By::Css(".foot button[value=dark]"), "dark colours");
    assert_eq!(page.url(), here);
    assert_eq!(page.attribute(By::Css("html"), "data-theme").as_deref(), Some("dark"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_title_stays_text_wherever_a_visitor_sees_it() {
    let Some(browser) = browser("walk-visitor-hostile") else {
        return;
    };
    let (site, owner, _) = profiled().await;
    let hostile = "<img src=x onerror=alert(1)></script><script>alert(2)</script> harbour";
    project(&owner, "tides", json!({"title": hostile})).await;
    site.http
        .comes_to_show("/search?q=harbour", |answer| answer.body["total"] == 1)
        .await;
    let base = site.http.base();
    let page = browser.person(Look::default()).page();
    page.goto(format!("{base}/"));
    page.press("/");
    page.type_keys("harbour");
    page.see(By::Css(".top .sug [role=option]:nth-of-type(2) mark"));
    assert_eq!(page.count(By::Css(".sug img, .sug script")), 0);
    page.press("Escape");
    assert_eq!(page.count(By::Css(".sug")), 0);
    for path in [
        "/",
        "/projects",
        "/projects?q=harbour",
        "/projects/tides",
        "/find?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E+harbour",
        "/requests?title=%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        assert_eq!(page.goto(format!("{base}{path}")).status, 200, "{path}");
        assert_eq!(page.count(By::Css("main img, main script:not([type])")), 0, "{path}");
        if path.starts_with("/projects") {
            assert!(page.text().contains("onerror=alert(1)"), "{path}: {}", page.text());
        }
        assert_eq!(page.complaints(), Vec::<String>::new(), "{path}");
    }
}
