//! Walk of a moderator: from the overview to a decision with evidence, and back.
//!
//! Invariant: every step is a link or a button of the page before.

use serde_json::json;
use tests::browser::{By, Look};
use tests::letters::letters_to;
use types::vocabulary::StaffRole;

use super::follow;
use crate::accounts::Site;
use crate::console::{browser, judge_answer};
use crate::moderation::published;
use crate::sql_page::{Asker, window};

/// Text that nobody may run or be turned by.
const HOSTILE: &str = "A copy.<img src=x onerror=alert(1)><script>alert(2)</script>\u{202e}";
const REASON: &str = "Its sentences are those of another write-up, published before. Say where yours come from.";

#[tokio::test(flavor = "multi_thread")]
async fn a_moderator_decides_on_evidence_and_takes_it_back() {
    let Some(browser) = browser("moderator") else { return };
    let site = Site::start(None, |options| options).await;
    let owner = Asker::new(&site, "owner@example.org").await;
    let staff = Asker::new(&site, "ines@example.org").await;
    let unit = published(&owner.agent.http).await;
    let options = site.server.options();
    // By the e-mail address: nobody knows ids.
    options.admin(&["operator", "role", "ines@example.org", "moderator"]);
    assert_eq!(
        site.store.moderation().role_of(staff.operator).await.unwrap(),
        Some(StaffRole::Moderator)
    );
    let report = json!({
        "kind": "unit", "id": unit, "reason": "copyright", "detail": HOSTILE, "email": "lena@example.org",
    });
    site.http.post("/reports", &report).await.expect(201);

    // The overview says what waits.
    let page = window(&site, &browser.person(Look::default()), &staff);
    page.goto(format!("{}/console", site.http.base()));
    page.see(By::Text("1 report waits for a decision"));
    follow(&page, By::Link("Open the desk"), "the desk");
    let text = page.text();
    assert!(
        text.contains("Simple case mappings") && text.contains("A copy.<img"),
        "{text}"
    );
    assert!(
        text.contains("lena@example.org") && text.contains("Nobody bought it."),
        "{text}"
    );
    judge_answer(&page, "the desk of a moderator");

    // Who owns it is a link away, and so is the way back.
    let desk = page.url();
    follow(&page, By::Css("#ow ~ dl a"), "the account of the owner");
    assert!(page.text().contains("owner@example.org"), "{}", page.text());
    assert_eq!(page.count(By::Text("Suspend …")), 0, "a moderator suspends nobody");
    judge_answer(&page, "an account");
    page.goto(&desk);

    // Without a reason the browser sends nothing; with one, a page asks first.
    page.click(By::Button("Decide …"));
    assert_eq!(page.url(), desk);
    page.fill(By::Label("Reason"), REASON);
    follow(&page, By::Button("Decide …"), "the question");
    judge_answer(&page, "the question before a takedown");
    let reviews = format!("/knowledge/{unit}/reviews");
    site.http.get(&reviews).await.expect(200);
    follow(&page, By::Button("Take it down"), "the decision");
    page.see(By::Text("Until then you can take it back"));
    judge_answer(&page, "a decision");
    site.http.soon(&reviews, 404).await;

    // Back to the question, which is answered by then: the report says how.
    page.evaluate("history.go(-1)");
    page.see(By::Text("It was taken down."));
    follow(&page, By::Css("a[href$='tab=decided']"), "what was decided");
    assert_eq!(page.count(By::Css("tbody tr")), 1);

    follow(&page, By::Css(".note button"), "undone");
    page.see(By::Text("A copy."));
    site.http.soon(&reviews, 200).await;

    // Left up this time.
    page.check(By::Css("input[value=dismiss]"));
    page.fill(
        By::Label("Reason"),
        "The mappings are facts of the standard, counted anew.",
    );
    follow(&page, By::Button("Decide …"), "the other question");
    follow(&page, By::Button("Leave it up"), "the other decision");
    page.see(By::Css("main table"));
    assert!(page.text().contains("left up"), "{}", page.text());
    assert_eq!(page.complaints(), Vec::<String>::new());

    // The owner was told nothing: the decision was taken back before a letter left.
    let folder = options.data().join("mail");
    let letters = letters_to(&folder, "owner@example.org", 1).await;
    assert!(
        letters.iter().all(|letter| !letter.text.contains("taken")),
        "{letters:?}"
    );
    options.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_answers_and_a_moderator_weighs_it_without_scripts() {
    let Some(browser) = browser("moderator-answers") else {
        return;
    };
    let site = Site::start(None, |options| options).await;
    let owner = Asker::new(&site, "owner@example.org").await;
    let staff = Asker::new(&site, "ines@example.org").await;
    let unit = published(&owner.agent.http).await;
    let options = site.server.options();
    options.admin(&["operator", "role", "ines@example.org", "moderator"]);
    let report = json!({"kind": "unit", "id": unit, "reason": "inaccurate", "detail": HOSTILE});
    let sent = site.http.post("/reports", &report).await.expect(201);
    options.admin(&["reports", "uphold", sent.text("/id"), "--note", REASON]);
    let look = Look {
        scripts: false,
        ..Look::default()
    };
    let page = window(&site, &browser.person(look), &owner);
    page.goto(format!("{}/console", site.http.base()));
    follow(
        &page,
        By::Css("a[href='/console/moderation?tab=own']"),
        "the own takedown",
    );
    assert!(page.text().contains(REASON), "{}", page.text());
    page.fill(
        By::Css("textarea[name=answer]"),
        "Every figure was counted again: <b>twice</b>.",
    );
    follow(&page, By::Css("form[action$='/answer'] button"), "the answer");
    assert!(page.text().contains("You answered just now"), "{}", page.text());

    let page = window(&site, &browser.person(look), &staff);
    page.goto(format!("{}/console/moderation", site.http.base()));
    follow(&page, By::Css("a[href$='tab=answers']"), "answers to weigh");
    follow(&page, By::Css("a[href$='/restore']"), "the answer");
    assert!(
        page.text().contains("<b>twice</b>") && page.text().contains("A copy."),
        "{}",
        page.text()
    );
    page.fill(
        By::Label("Reason"),
        "The owner counted the figures again and shows how.",
    );
    follow(&page, By::Button("Show it again"), "shown again");
    page.see(By::Text("back up"));
    site.http.soon(&format!("/knowledge/{unit}/reviews"), 200).await;
    options.assert_consistent();
}
