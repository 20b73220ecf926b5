//! Pages and the console in a real browser: a person signs up, sets up agents and sees what became of their work.
//!
//! Invariant: whatever a person can do without scripts is done here, and every page is judged by axe-core in both themes
//! and two widths.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::browser::{Browser, By, Look, Page, Person};
use tests::letters::{letter_to, letters_to};
use tests::world::{Agent, Operator, merged, project_body};
use tests::{Http, Options, Server};

use crate::binary;
use crate::pages::{ALWAYS, furnish};

const EMAIL: &str = "ada@example.org";
/// Widths, and whether the colours are dark.
pub(crate) const LOOKS: [(u32, bool); 4] = [(390, false), (390, true), (1_440, false), (1_440, true)];
/// Pages that a signed-in person can open.
const CONSOLE: [&str; 17] = [
    "/console",
    "/console/agents",
    "/console/login",
    "/console/datasets",
    "/console/publish",
    "/console/contributions",
    "/console/knowledge",
    "/console/library",
    "/console/money",
    "/console/money/add",
    "/console/money/add?packs=5&with=phone",
    "/console/money/add?with=agent",
    "/console/quota",
    "/console/collectors",
    "/console/activity",
    "/console/apps",
    "/console/settings",
];
/// Pages that anybody can open.
const PUBLIC: [&str; 24] = [
    "/",
    "/docs",
    "/docs/api",
    "/docs/api/contribute_records",
    "/docs/api/search_knowledge?q=tide&try=1",
    "/docs/connect",
    "/docs/errors",
    "/docs/glossary",
    "/docs/guide",
    "/docs/limits",
    "/pricing",
    "/find",
    "/find?q=xyzzyx",
    "/projects",
    "/units",
    "/requests?title=Readings&kind=dataset",
    "/signup",
    "/signin",
    "/signin/link?token=none",
    "/verify?token=none",
    "/invite",
    "/terms",
    "/licenses",
    "/no/such/page",
];

pub(crate) struct Site {
    server: Server,
    pub(crate) http: Http,
    pub(crate) folder: TempDir,
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self::start_with(|options| options).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(Options) -> Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(binary(), folder.path().join("data")).with("SLUICE__SIGNUP__OPEN", "true");
        let options = change(options);
        let server = Server::start(&options).await;
        Self {
            http: server.http(),
            server,
            folder,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.base())
    }

    /// Options of the commands of the service.
    pub(crate) fn options(&self) -> &Options {
        self.server.options()
    }

    fn mail(&self) -> PathBuf {
        self.folder.path().join("data/mail")
    }

    /// Signs a person up by the pages, and returns the person's window.
    pub(crate) async fn signed_up(&self, browser: &Browser, look: Look) -> (Person, Page) {
        let person = browser.person(look);
        let page = person.page();
        page.goto(self.url("/signup"));
        page.fill(By::Label("E-mail"), EMAIL);
        page.fill(By::Label("Display name"), "Ada");
        // Without the statements of a person nothing is made, and what was typed stays.
        assert_eq!(page.submit(By::Button("Send me the link")).status, 400);
        if look.scripts {
            judge_answer(&page, "a sign-up with errors");
        }
        assert_eq!(page.attribute(By::Label("E-mail"), "value").as_deref(), Some(EMAIL));
        page.check(By::Css("#adult"));
        page.check(By::Css("#accept_terms"));
        assert_eq!(page.submit(By::Button("Send me the link")).status, 200);
        page.see(By::Heading("Check your mail"));
        if look.scripts {
            judge_answer(&page, "a sign-up");
        }
        let letter = letter_to(&self.mail(), EMAIL).await;
        page.goto(self.url(&format!("/verify?token={}", letter.token())));
        if look.scripts {
            judge_answer(&page, "a link of a letter");
        }
        page.check(By::Css("#adult"));
        page.check(By::Css("#accept_terms"));
        let visit = page.submit(By::Button("Verify my address"));
        assert_eq!((visit.status, visit.url), (200, self.url("/console")));
        (person, page)
    }

    /// Signs in by a link of a letter, the `count`th of all letters to the person.
    pub(crate) async fn sign_in(&self, page: &Page, count: usize) {
        page.goto(self.url("/signin"));
        page.fill(By::Label("E-mail"), EMAIL);
        assert_eq!(page.submit(By::Button("Send me the link")).status, 200);
        let letters = letters_to(&self.mail(), EMAIL, count).await;
        // Files of letters have no order, so the link that still works is looked for.
        for letter in letters.iter().filter(|letter| letter.text.contains("/signin/link")) {
            page.goto(self.url(&format!("/signin/link?token={}", letter.token())));
            if page.count(By::Css("form[action='/signin/link']")) == 1 {
                page.submit(By::Css("form[action='/signin/link'] button"));
                return;
            }
        }
        panic!("no link works");
    }
}

pub(crate) fn browser(test: &str) -> Option<Browser> {
    Browser::start(&artefacts(test))
}

pub(crate) fn artefacts(test: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser").join(test)
}

/// Fails if axe-core finds something on the page, if it overflows, or if the browser complained.
pub(crate) fn judge(page: &Page, what: &str) {
    let findings = page.axe();
    assert!(findings.is_empty(), "{what}: {findings:#?}");
    assert_eq!(page.overflowing(), Vec::<String>::new(), "{what}");
    let mut complaints = page.complaints();
    // axe-core makes a style for its own measurements, which the policy refuses.
    complaints
        .retain(|complaint| !complaint.contains("Content Security Policy") || !complaint.contains("inline style"));
    assert_eq!(complaints, Vec::<String>::new(), "{what}");
}

/// Judges the document that is open in every look. What a form answers cannot be opened once more.
pub(crate) fn judge_answer(page: &Page, what: &str) {
    for (width, dark) in LOOKS {
        page.look(width, dark);
        judge(page, &format!("{what} at {width} px, dark: {dark}"));
    }
    page.look(Look::default().width, Look::default().dark);
}

/// Opens pages in every look, judges them and leaves pictures.
fn judge_all(site: &Site, browser: &Browser, paths: &[String], cookie: Option<&str>, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for (width, dark) in LOOKS {
        let person = browser.person(Look {
            width,
            dark,
            scripts: true,
        });
        if let Some(cookie) = cookie {
            person.put_cookie(&site.url("/").replace("http:", "https:"), "__Host-sluice", cookie);
        }
        let page = person.page();
        for path in paths {
            let visit = page.goto(site.url(path));
            assert_eq!(visit.url, site.url(path));
            let name = path.trim_matches('/').replace(['/', '?', '='], "-");
            let theme = if dark { "dark" } else { "light" };
            page.picture(&folder.join(format!("{name}-{width}-{theme}.png")));
            judge(&page, &format!("{path} at {width} px, {theme}"));
        }
    }
}

/// Secret on the page that shows it once.
pub(crate) fn secret(page: &Page) -> String {
    page.read(By::Css("#secret")).trim().to_owned()
}

fn dataset(slug: &str) -> Value {
    json!({
        "slug": slug,
        "title": "Tides at the harbour",
        "readme": "Level of the water at the harbour, measured every ten minutes.",
        "schemaDef": {"fields": [{"name": "at", "type": "string", "required": true}, {"name": "level", "type": "number"}]},
        "visibility": "private",
    })
}

/// A device shows a code, which the person types; its key is ended again.
async fn log_a_device_in(site: &Site, page: &Page) {
    let begun = site
        .http
        .post("/agents/login", &json!({"device": "ada-laptop"}))
        .await
        .expect(202);
    let device = site.http.with(begun.text("/key"));
    assert_eq!(device.get("/me").await.expect(401).text("/status"), "pending");
    page.goto(site.url("/console/login"));
    page.fill(By::Label("Code"), "BCDF-GHJ");
    assert_eq!(page.submit(By::Button("Next")).status, 400);
    judge_answer(page, "a code that is none");
    page.fill(By::Label("Code"), begun.text("/code"));
    assert_eq!(page.submit(By::Button("Next")).status, 200);
    assert!(page.text().contains("ada-laptop"), "{}", page.text());
    judge_answer(page, "the login of a device");
    let approved = page.submit(By::Button("Approve"));
    assert_eq!(
        (approved.status, approved.url),
        (200, site.url("/console/login?ended=approved"))
    );
    judge_answer(page, "a login that was approved");
    assert_eq!(device.soon("/me", 200).await.text("/name"), "tide-gauge");
    page.goto(site.url("/console/agents"));
    judge_answer(page, "agents with the key of a login");
    page.click(By::Css("form:has-text('ada-laptop') summary"));
    page.submit(By::Css("form:has-text('ada-laptop') button"));
    device.soon("/me", 401).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_up_sets_up_agents_and_sees_what_became_of_their_work() {
    let Some(browser) = browser("console") else { return };
    let site = Site::start().await;
    let (person, page) = site.signed_up(&browser, Look::default()).await;
    let cookies = person.cookies();
    let session = cookies.iter().find(|cookie| cookie.name == "__Host-sluice").unwrap();
    assert!(
        session.http_only && session.secure && session.same_site == "Lax",
        "{session:?}"
    );

    // Pages without rows yet.
    let paths: Vec<String> = CONSOLE.iter().map(|path| (*path).to_owned()).collect();
    judge_all(
        &site,
        &browser,
        &paths,
        Some(&session.value),
        &artefacts("console-empty"),
    );

    // A token, which makes a dataset.
    page.goto(site.url("/console/settings"));
    page.fill(By::Label("Label of a new token"), "laptop");
    assert_eq!(page.submit(By::Button("Make a token")).status, 200);
    judge_answer(&page, "a new token");
    let token = secret(&page);
    site.http
        .with(&token)
        .post("/projects", &dataset("tides"))
        .await
        .expect(201);

    // A claim code, with which an agent asks; the person types its phrase.
    page.goto(site.url("/console/agents"));
    assert_eq!(page.submit(By::Button("Make a one-time code")).status, 200);
    let code = secret(&page);
    let claim = json!({"code": code, "name": "tide-gauge", "description": "Reads the <b>gauge</b>."});
    let claimed = site.http.post("/agents/claim", &claim).await.expect(202);
    let agent = site.http.with(claimed.text("/key"));
    agent.get("/projects").await.expect(401);
    page.goto(site.url("/console/agents"));
    judge_answer(&page, "a claim that waits");
    page.fill(By::Label("Phrase that the agent tells you"), "not the four words");
    assert_eq!(page.submit(By::Button("Approve tide-gauge")).status, 400);
    judge_answer(&page, "a wrong phrase");
    page.fill(By::Label("Phrase that the agent tells you"), claimed.text("/phrase"));
    let approved = page.submit(By::Button("Approve tide-gauge"));
    assert_eq!((approved.status, approved.url), (200, site.url("/console/agents")));
    agent.get("/projects").await.expect(200);

    // An agent of its own, whose key is replaced and which is removed.
    page.fill(By::Label("Name"), "second");
    assert_eq!(page.submit(By::Button("Make agent and key")).status, 200);
    judge_answer(&page, "a new agent");
    let first_key = site.http.with(&secret(&page));
    first_key.get("/projects").await.expect(200);
    page.goto(site.url("/console/agents"));
    page.pick(By::Css("tr:has-text('second') select"), "0");
    page.submit(By::Css("tr:has-text('second') form[action$='/rotate'] button"));
    let second_key = site.http.with(&secret(&page));
    first_key.get("/projects").await.expect(401);
    second_key.get("/projects").await.expect(200);
    page.goto(site.url("/console/agents"));
    page.submit(By::Css("tr:has-text('second') a[href$='/remove']"));
    judge_answer(&page, "the question before an agent is removed");
    page.submit(By::Css("form[action$='/remove'] button"));
    second_key.get("/projects").await.expect(401);

    log_a_device_in(&site, &page).await;

    // Work: one batch is merged, another refused.
    let records =
        json!({"records": [{"at": "2026-11-24T00:00", "level": 1.5}, {"at": "2026-11-24T00:10", "level": 1.25}]});
    let merged = agent
        .post("/projects/tides/contribute?wait=20", &records)
        .await
        .expect(201);
    assert_eq!(merged.text("/status"), "merged", "{}", merged.body);
    let refused = json!({"records": [{"level": "high"}]});
    let refused = agent
        .post("/projects/tides/contribute?wait=20", &refused)
        .await
        .expect(201);
    assert_eq!(refused.text("/status"), "rejected", "{}", refused.body);

    let mut paths: Vec<String> = CONSOLE.iter().map(|path| (*path).to_owned()).collect();
    paths.push("/console/datasets/tides".to_owned());
    for contribution in [&merged, &refused] {
        paths.push(format!("/console/contributions/{}", contribution.text("/id")));
    }
    page.goto(site.url("/console/datasets/tides"));
    let text = page.text();
    assert!(
        text.contains("tide-gauge") && text.contains("Tides at the harbour"),
        "{text}"
    );
    page.goto(site.url("/console/activity"));
    let text = page.text();
    for words in [
        "made an account token",
        "made a one-time code",
        "let an agent join",
        "removed an agent",
        "approved the login of a device",
        "ended a key",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Text of an agent is text, whatever it contains.
    page.goto(site.url("/console/agents"));
    assert!(page.text().contains("Reads the <b>gauge</b>."), "{}", page.text());
    judge_all(&site, &browser, &paths, Some(&session.value), &artefacts("console"));
}

#[tokio::test(flavor = "multi_thread")]
async fn public_pages_are_legible_in_every_look() {
    let Some(browser) = browser("public") else { return };
    let site = Site::start().await;
    let options = site.server.options();
    let (operator, other) = (Operator::create(options, "seller"), Operator::create(options, "buyer"));
    let seller = Agent::create(&site.http, &operator, "seller").await;
    let buyer = Agent::create(&site.http, &other, "buyer").await;
    options.admin(&["credits", "grant", &other.id, "--cents", "100"]);
    let paid = merged(project_body("quay"), json!({"access": "paid", "price": "0.50"}));
    seller.http.post("/projects", &paid).await.expect(201);
    let paths = PUBLIC.iter().chain(&ALWAYS).map(|path| (*path).to_owned());
    let mut paths: Vec<String> = paths.collect();
    paths.extend(furnish(&seller.http, &buyer.http, "quay").await);
    paths.sort();
    paths.dedup();
    judge_all(&site, &browser, &paths, None, &artefacts("public"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_somebody_beyond_a_limit_is_legible_in_every_look() {
    let Some(browser) = browser("limit") else { return };
    let site = Site::start_with(|options| options.with("SLUICE__LIMITS__SIGN_UPS_PER_IP_PER_HOUR", 1)).await;
    let page = browser.person(Look::default()).page();
    for status in [200, 429] {
        page.goto(site.url("/signup"));
        page.fill(By::Label("E-mail"), EMAIL);
        page.fill(By::Label("Display name"), "Ada");
        page.check(By::Css("#adult"));
        page.check(By::Css("#accept_terms"));
        assert_eq!(page.submit(By::Button("Send me the link")).status, status);
    }
    judge_answer(&page, "too many sign-ups");
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_and_frames_of_other_sites_get_nothing() {
    let Some(browser) = browser("attacks") else { return };
    let site = Site::start().await;
    let (person, page) = site.signed_up(&browser, Look::default()).await;
    page.goto(site.url("/console/settings"));
    let form_token = page
        .attribute(By::Css("input[name=form_token] >> nth=0"), "value")
        .unwrap();
    // Another site that even knows the token of the form, and one that frames the console.
    let action = site.url("/console/tokens");
    let form = format!(
        "<form method=post action='{action}'><input name=form_token value='{form_token}'><input name=label value=evil>\
         <button>Win a prize</button></form>"
    );
    let frame = format!("<iframe src='{}'></iframe>", site.url("/console/settings"));
    for host in ["localhost", "127.0.0.1"] {
        let evil = browser.site(host, &[("/form", &form), ("/frame", &frame)]);
        let tab = person.page();
        tab.goto(format!("{evil}/form"));
        let visit = tab.submit(By::Button("Win a prize"));
        // The browser sends no cookie to another site's form, or names its origin.
        assert!(visit.status == 403 || visit.url.contains("/signin"), "{visit:?}");
        let tab = person.page();
        tab.goto(format!("{evil}/frame"));
        assert!(
            tab.frames().iter().all(|url| !url.contains("/console")),
            "{:?}",
            tab.frames()
        );
    }
    page.goto(site.url("/console/settings"));
    assert_eq!(page.count(By::Css("form[action$='/revoke']")), 0);
    // A session that somebody planted does not become the person's.
    let planted = "wts_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let victim = browser.person(Look::default());
    victim.put_cookie(&site.url("/").replace("http:", "https:"), "__Host-sluice", planted);
    let tab = victim.page();
    site.sign_in(&tab, 2).await;
    let cookies = victim.cookies();
    let session = cookies.iter().find(|cookie| cookie.name == "__Host-sluice").unwrap();
    assert_ne!(session.value, planted);
    // After signing in nobody is led to another site.
    for next in ["//evil.example", "https://evil.example", "/\\evil.example"] {
        let tab = browser.person(Look::default()).page();
        tab.goto(site.url(&format!("/signin?next={next}")));
        assert_ne!(
            tab.attribute(By::Css("input[name=next]"), "value").as_deref(),
            Some(next)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_works_without_scripts_and_by_keyboard() {
    let Some(browser) = browser("plain") else { return };
    let site = Site::start().await;
    let look = Look {
        width: 390,
        scripts: false,
        ..Look::default()
    };
    let (_, page) = site.signed_up(&browser, look).await;
    page.goto(site.url("/console/agents"));
    assert_eq!(page.submit(By::Button("Make a one-time code")).status, 200);
    assert!(secret(&page).starts_with("wtc_"));
    // The first stop leads past the navigation.
    page.goto(site.url("/console/settings"));
    page.press("Tab");
    let first = page.focused();
    assert_eq!((first.name.as_str(), first.href.as_str()), ("Skip to content", "#main"));
    // From there every stop can be seen, until the sessions are reached.
    page.press("Enter");
    let mut names = Vec::new();
    for _ in 0..30 {
        page.press("Tab");
        let focus = page.focused();
        assert!(focus.outlined || focus.tag == "body", "{focus:?}");
        names.push(focus.name);
    }
    assert!(names.iter().any(|name| name == "Make a token"), "{names:?}");
    // A theme is chosen without scripts, and the person stays on the page.
    page.click(By::Css(".rail summary"));
    let visit = page.submit(By::Css("form[action='/theme'] button[value=dark]"));
    assert_eq!(visit.url, site.url("/console/settings"));
    assert_eq!(page.attribute(By::Css("html"), "data-theme").as_deref(), Some("dark"));
    assert_eq!(
        page.count(By::Css("form[action='/theme'] [value=dark][aria-pressed=true]")),
        1
    );
    page.click(By::Css(".rail summary"));
    let visit = page.submit(By::Css("form[action='/signout'] button"));
    assert_eq!(visit.url, site.url("/"));
    assert_eq!(page.goto(site.url("/console")).url, site.url("/signin?next=/console"));
}
