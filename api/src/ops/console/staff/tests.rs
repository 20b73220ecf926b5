use std::time::Duration;

use http::header;
use serde_json::json;
use store::{ReportStatus, StaffRole};
use types::{Clock as _, OperatorId};

use crate::testing::browser::{Browser, EMAIL, form};
use crate::testing::{Got, Service};

const REASON: &str = "Nine of its ten sentences are those of another item.";

async fn with_role(browser: &Browser<'_>, role: Option<StaffRole>) -> OperatorId {
    let store = &browser.service.app.store;
    let id = store.operator_by_email(EMAIL).await.unwrap().unwrap().id;
    assert!(store.moderation().role_set(id, role).await.unwrap());
    id
}

/// Sends a form with the token of the session.
async fn send(browser: &Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Got {
    let token = browser.form_token().await;
    let mut all = vec![("form_token", token.as_str())];
    all.extend(fields);
    browser.post(path, &form(&all)).await
}

/// Returns the operator of a token.
async fn operator_of(service: &Service, token: &str) -> OperatorId {
    let accounts = service.app.store.accounts();
    let principal = accounts
        .principal(&crate::secrets::hash(token), service.clock.now())
        .await;
    principal.unwrap().unwrap().operator().unwrap()
}

fn location(got: &Got) -> &str {
    assert_eq!(got.status, 303, "{}", got.text());
    got.headers[header::LOCATION].to_str().unwrap()
}

/// Reports the dataset `prices` and returns the id of the report.
async fn reported(service: &Service, reason: &str, from: &str) -> String {
    let report = json!({
        "kind": "dataset", "id": "prices", "reason": reason, "detail": "It is <b>a copy</b> of my work.",
        "email": format!("{from}@example.org"),
    });
    let got = service.call("POST", "/reports", None, &report.to_string()).await;
    assert_eq!(got.status, 201, "{}", got.text());
    got.json()["id"].as_str().unwrap().to_owned()
}

/// Returns the browser of a moderator, and two reports of one dataset, the second of which is urgent.
async fn desk(service: &Service) -> (Browser<'_>, String, String) {
    let browser = Browser::signed_in(service).await;
    let seller = service.operator().await;
    let owner = service.agent(&seller, "owner").await;
    service.project(&owner, "prices", &json!({})).await;
    let first = reported(service, "other", "eve").await;
    let urgent = reported(service, "personal-data", "bob").await;
    with_role(&browser, Some(StaffRole::Moderator)).await;
    (browser, first, urgent)
}

/// Returns the paths of the forms on a page that end with a word.
fn forms(page: &str, end: &str) -> Vec<String> {
    page.split("action=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|path| path.ends_with(end))
        .map(str::to_owned)
        .collect()
}

/// To everybody who is not of the staff, pages and forms of the staff are missing, whatever they name.
#[tokio::test]
async fn the_desk_is_missing_for_everybody_else() {
    let service = Service::start().await;
    // Before there are other letters than the one with the link.
    let browser = Browser::signed_in(&service).await;
    let seller = service.operator().await;
    let owner = service.agent(&seller, "owner").await;
    service.project(&owner, "prices", &json!({})).await;
    let report = reported(&service, "copyright", "eve").await;
    let ada = with_role(&browser, None).await;
    let decide = [("decision", "uphold"), ("note", REASON)];
    let suspend = [("reason", REASON), ("confirm", "Ada")];
    let other = operator_of(&service, &seller).await;
    let pages = ["/console/operators", "/console/invitations", "/console/figures"];
    let of_other = format!("/console/operators/{other}");
    for (role, pages_seen) in [
        (None, 0),
        (Some(StaffRole::Moderator), 1),
        (Some(StaffRole::Administrator), 3),
    ] {
        with_role(&browser, role).await;
        let mut seen = 0;
        for page in pages {
            let got = browser.get(page).await;
            seen += usize::from(got.status == 200);
            assert!(got.status == 200 || got.status == 404, "{page}: {}", got.status);
        }
        assert_eq!(seen, pages_seen, "{role:?}");
        let account = browser.get(&of_other).await;
        assert_eq!(account.status == 200, role.is_some(), "{role:?}");
        assert_eq!(
            account.text().contains("/suspend\""),
            role == Some(StaffRole::Administrator)
        );
        if role != Some(StaffRole::Administrator) {
            for (path, fields) in [
                (format!("{of_other}/suspend"), &suspend[..]),
                (format!("{of_other}/restore"), &suspend[..]),
                ("/console/invitations".to_owned(), &[("email", "eve@example.org")][..]),
                (
                    "/console/invitations/withdraw".to_owned(),
                    &[("email", "eve@example.org")][..],
                ),
                ("/console/jobs/none/retry".to_owned(), &[][..]),
            ] {
                assert_eq!(send(&browser, &path, fields).await.status, 404, "{role:?} {path}");
            }
        }
        if role.is_none() {
            for (path, fields) in [
                (format!("/console/reports/{report}"), &decide[..]),
                (format!("/console/reports/{report}/reopen"), &[][..]),
                (format!("/console/takedowns/{report}/undo"), &[][..]),
                (format!("/console/takedowns/{report}/restore"), &[("note", REASON)][..]),
            ] {
                assert_eq!(send(&browser, &path, fields).await.status, 404, "{path}");
            }
            for page in [
                format!("/console/reports/{report}/confirm?decision=uphold&note=x"),
                format!("/console/takedowns/{report}/restore"),
            ] {
                assert_eq!(browser.get(&page).await.status, 404, "{page}");
            }
            let own = browser.get("/console/moderation?tab=decided").await.text();
            assert!(own.contains("Nothing of yours") && !own.contains("prices"), "{own}");
        }
    }
    // Nobody suspends itself, and nobody with a role is suspended by a page.
    let own = send(&browser, &format!("/console/operators/{ada}/suspend"), &suspend).await;
    assert_eq!(own.status, 404);
}

/// A report is decided with a reason after a question, undone, and decided again; forms that are sent twice end alike.
#[tokio::test]
async fn a_report_is_decided_with_a_reason_and_undone() {
    let service = Service::start().await;
    let (browser, first, urgent) = desk(&service).await;
    let overview = browser.get("/console").await.text();
    assert!(overview.contains("2 reports wait for a decision"), "{overview}");
    let desk = browser.get("/console/moderation").await.text();
    assert!(
        desk.contains("A title") && desk.contains("It is &#60;b&#62;a copy&#60;/b&#62; of my work."),
        "{desk}"
    );
    let order: Vec<_> = [&urgent, &first].map(|id| desk.find(id.as_str()).unwrap()).into();
    assert!(order[0] < order[1], "personal data comes first");
    assert!(desk.contains(&format!("action=\"/console/reports/{urgent}/confirm\"")));
    assert_eq!(browser.get("/console/moderation?report=none").await.status, 200);
    let path = format!("/console/reports/{urgent}");
    for note in ["", "too short", "                         "] {
        let fields = [("decision", "dismiss"), ("note", note)];
        let asked = browser.get(&format!("{path}/confirm?{}", form(&fields))).await;
        for got in [asked, send(&browser, &path, &fields).await] {
            assert_eq!(got.status, 400, "{note:?}");
            let page = got.text();
            assert!(page.contains("Must be a reason of 20 to 2000 characters"), "{page}");
            assert!(page.contains("value=\"dismiss\" checked"), "{page}");
        }
    }
    // A browser ends a line with two characters, which count as one.
    let lines = "A line of the reason.\r\n".repeat(90);
    let asked = browser
        .get(&format!(
            "{path}/confirm?{}",
            form(&[("decision", "dismiss"), ("note", &lines)])
        ))
        .await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    let fields = [("decision", "uphold"), ("note", REASON)];
    let question = format!("{path}/confirm?{}", form(&fields));
    let asked = browser.get(&question).await;
    assert_eq!(asked.status, 200);
    assert!(
        asked.text().contains(REASON) && asked.text().contains("Take it down"),
        "{}",
        asked.text()
    );
    assert_eq!(
        service.get("/projects/prices", None).await.status,
        200,
        "nothing happened yet"
    );
    for _ in 0..2 {
        assert_eq!(
            location(&send(&browser, &path, &fields).await),
            "/console/moderation?tab=decided"
        );
    }
    assert_eq!(service.get("/projects/prices", None).await.status, 404);
    let again = browser.get(&question).await;
    assert_eq!(location(&again), format!("/console/moderation?report={urgent}"));
    let other_way = send(&browser, &path, &[("decision", "dismiss"), ("note", REASON)]).await;
    assert_eq!(other_way.status, 409);
    let decided = browser.get("/console/moderation?tab=decided").await.text();
    assert!(
        decided.contains(REASON) && decided.contains("Until then you can take it back"),
        "{decided}"
    );
    let undo = forms(&decided, "/undo").swap_remove(0);
    for _ in 0..2 {
        assert_eq!(location(&send(&browser, &undo, &[]).await), "/console/moderation");
    }
    assert_eq!(service.get("/projects/prices", None).await.status, 200);
    // The other report is left up, and opened again.
    let path = format!("/console/reports/{first}");
    let fields = [("decision", "dismiss"), ("note", REASON)];
    for _ in 0..2 {
        assert_eq!(
            location(&send(&browser, &path, &fields).await),
            "/console/moderation?tab=decided"
        );
    }
    for _ in 0..2 {
        let opened = send(&browser, &format!("{path}/reopen"), &[]).await;
        assert_eq!(location(&opened), format!("/console/moderation?report={first}"));
    }
    for id in [&first, &urgent] {
        let report = service.app.store.moderation().report_of(id.parse().unwrap()).await;
        let report = report.unwrap().unwrap();
        assert_eq!((report.status, report.note), (ReportStatus::Open, None), "{id}");
    }
}

/// Once the letters have left, a takedown is not undone: the item is shown again with a reason, and both stay on the list.
#[tokio::test]
async fn what_was_told_is_weighed_and_shown_again() {
    let service = Service::start().await;
    let (browser, first, _) = desk(&service).await;
    let path = format!("/console/reports/{first}");
    let fields = [("decision", "uphold"), ("note", REASON)];
    location(&send(&browser, &path, &fields).await);
    let decided = browser.get("/console/moderation?tab=decided").await.text();
    let undo = forms(&decided, "/undo").swap_remove(0);
    service.clock.advance(Duration::from_mins(10));
    let now = service.clock.now();
    let letters = service
        .app
        .store
        .flow()
        .jobs_lease(now, Duration::from_secs(1), 99)
        .await
        .unwrap();
    assert!(!letters.is_empty());
    assert_eq!(send(&browser, &undo, &[]).await.status, 409);
    let restore = undo.replace("/undo", "/restore");
    let down = browser.get("/console/moderation?tab=down").await.text();
    assert!(down.contains(&format!("href=\"{restore}\"")), "{down}");
    let page = browser.get(&restore).await;
    assert!(
        page.text().contains("Show it again?") && page.text().contains("a copy"),
        "{}",
        page.text()
    );
    assert_eq!(send(&browser, &restore, &[("note", "short")]).await.status, 400);
    for _ in 0..2 {
        let back = send(&browser, &restore, &[("note", REASON)]).await;
        assert_eq!(location(&back), "/console/moderation?tab=decided");
    }
    assert_eq!(service.get("/projects/prices", None).await.status, 200);
    for (outcome, is_there) in [("upheld", true), ("dismissed", false), ("", true)] {
        let page = browser
            .get(&format!("/console/moderation?tab=decided&outcome={outcome}"))
            .await
            .text();
        assert_eq!(page.contains("back up"), is_there, "{outcome}");
    }
}

/// An administrator finds an account, suspends it once with its name typed, and restores it.
#[tokio::test]
async fn an_account_is_found_suspended_and_restored() {
    let service = Service::start().await;
    let token = service.operator_at("post@prime.example").await;
    let id = operator_of(&service, &token).await;
    let name = service.app.store.operator(id).await.unwrap().unwrap().display_name;
    let browser = Browser::signed_in(&service).await;
    with_role(&browser, Some(StaffRole::Administrator)).await;
    for told in ["post%40prime", "POST", &id.to_string()] {
        let found = browser.get(&format!("/console/operators?q={told}")).await.text();
        assert!(found.contains(&format!("/console/operators/{id}")), "{told}: {found}");
    }
    let none = browser.get("/console/operators?q=%3Cscript%3E").await.text();
    assert!(
        none.contains("&#60;script&#62;") && !none.contains(&id.to_string()),
        "{none}"
    );
    let path = format!("/console/operators/{id}");
    for fields in [
        [("reason", "short"), ("confirm", name.as_str())],
        [("reason", REASON), ("confirm", "somebody")],
    ] {
        let got = send(&browser, &format!("{path}/suspend"), &fields).await;
        assert_eq!(got.status, 400);
        assert!(
            got.text().contains(&format!("value=\"{}\"", fields[1].1)),
            "what was typed stays"
        );
    }
    let fields = [("reason", REASON), ("confirm", name.as_str())];
    for _ in 0..2 {
        assert_eq!(
            location(&send(&browser, &format!("{path}/suspend"), &fields).await),
            path
        );
    }
    assert_eq!(service.get("/operators/payout-proof", Some(&token)).await.status, 401);
    let page = browser.get(&path).await.text();
    assert!(page.contains(REASON) && page.contains("Restore the account"), "{page}");
    for _ in 0..2 {
        assert_eq!(
            location(&send(&browser, &format!("{path}/restore"), &fields).await),
            path
        );
    }
    let jobs = service.app.store.flow().jobs_of(id).await.unwrap();
    let letters = jobs.iter().filter(|job| job.payload.contains(REASON)).count();
    assert_eq!(letters, 2, "each change is told once");
    assert_eq!(browser.get("/console/operators/none").await.status, 404);
}

/// Invitations are made once, listed and withdrawn; figures and failing jobs are shown.
#[tokio::test]
async fn an_administrator_invites_and_sees_the_figures() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let ada = with_role(&browser, Some(StaffRole::Administrator)).await;
    let wrong = send(&browser, "/console/invitations", &[("email", "nobody")]).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("value=\"nobody\""), "{}", wrong.text());
    let fields = [("email", "Eve@example.org")];
    for _ in 0..2 {
        assert_eq!(
            location(&send(&browser, "/console/invitations", &fields).await),
            "/console/invitations"
        );
    }
    let page = browser.get("/console/invitations").await.text();
    assert_eq!(forms(&page, "/withdraw").len(), 1, "{page}");
    for _ in 0..2 {
        let withdrawn = send(&browser, "/console/invitations/withdraw", &fields).await;
        assert_eq!(location(&withdrawn), "/console/invitations");
    }
    let page = browser.get("/console/invitations").await.text();
    assert!(!page.contains("eve@example.org"), "{page}");

    let (flow, now) = (service.app.store.flow(), service.clock.now());
    let job = store::NewJob {
        id: "a-job".to_owned(),
        kind: "mail".to_owned(),
        dedupe: None,
        operator: Some(ada),
        payload: "{}".to_owned(),
        due_at: now,
        now,
    };
    assert!(flow.job_add(job).await.unwrap());
    flow.jobs_lease(now, Duration::from_secs(1), 99).await.unwrap();
    flow.job_fail("a-job", "451 <try> again", now).await.unwrap();
    let page = browser.get("/console/figures").await.text();
    assert!(
        page.contains("Nothing was counted yet") && page.contains("451 &#60;try&#62; again"),
        "{page}"
    );
    let staff = service.app.store.staff();
    let today = staff.figures_counted(now.day(), now).await.unwrap();
    staff.figures_keep(vec![today]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            location(&send(&browser, "/console/jobs/a-job/retry", &[]).await),
            "/console/figures#jb"
        );
    }
    let page = browser.get("/console/figures").await.text();
    assert!(page.contains("1 new in 7 days"), "{page}");
    let due = flow
        .jobs_lease(service.clock.now(), Duration::from_secs(1), 99)
        .await
        .unwrap();
    assert!(due.iter().any(|job| job.id == "a-job"));
}
