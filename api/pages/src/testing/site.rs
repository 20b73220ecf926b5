//! Samples of the pages outside the console.

use super::checkout::{credits, spent, wallet};
use super::market::hit;
use super::{Book, Texts, ago, ahead, person, visitor};
use crate::{
    AgentChoice, BrowsePage, BrowseRow, CheckMailPage, ConfirmPage, ConsentBudget, ConsentPage, Error, ErrorPage,
    FaucetPage, FeedPage, FeedRow, FieldError, FindHit, HomeDataset, HomeExample, HomePage, HomeRequest, InvitePage,
    KnowledgePage, LeaderboardPage, LicenseView, LicensesPage, LinkState, LoggedRow, MailKind, PaidPage, PlaceRow,
    ReportOutcomePage, ReportPage, ReportState, ScopeChoice, SecretPage, SignInLinkPage, SignInPage, SignUpPage,
    TableCell, TakedownsPage, TermsPage, Theme, VerifyPage, VerifyState,
};

/// Terms in Markdown with everything that a document may have, and HTML that it may not.
pub(super) const TERMS: &str = "# Terms of Service\n\nYou and the service agree on this. **Read it.**\n\n## 1. Who may use it\n\nA \
                     person who is [19 or older](https://sluice.example/terms).\n\n### Agents\n\n- An agent acts for its \
                     operator.\n- It accepts nothing.\n\n## 2. Payments\n\n| What | When |\n|-|-|\n| Hold | 7 days |\n\n\
                     <script>alert(1)</script>\n\nInline <b onclick=\"alert(1)\">markup</b>, [a bad \
                     link](javascript:alert(1)) and ![a picture](https://elsewhere.example/x.png).\n\n#### Deep\n\n`code`\n";

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    home(book, texts)?;
    entry(book, texts)?;
    secrets(book, texts)?;
    consent(book, texts)?;
    book.add(
        "terms",
        &TermsPage::new(visitor("/terms"), "Terms of Service", "2026-11-01", TERMS),
    )?;
    let license = |id: &str, name: &str, url: &str| LicenseView {
        id: id.to_owned(),
        name: name.to_owned(),
        url: url.to_owned(),
    };
    let licenses = vec![
        license(
            "CC0-1.0",
            "Creative Commons Zero v1.0 Universal",
            "https://creativecommons.org/publicdomain/zero/1.0/",
        ),
        license(
            "CC-BY-4.0",
            "Creative Commons Attribution 4.0",
            "https://creativecommons.org/licenses/by/4.0/",
        ),
        license(
            "platform-standard",
            "Platform Standard Licence",
            "/licenses/platform-standard",
        ),
    ];
    book.add(
        "licenses",
        &LicensesPage {
            chrome: visitor("/licenses"),
            licenses,
        },
    )?;
    market(book, texts)?;
    payments(book, texts)?;
    records(book, texts)?;
    errors(book, texts)
}

fn home(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let dataset = |slug: &str, title: &str, records: u64, version: u64, minutes: i64| HomeDataset {
        slug: slug.to_owned(),
        title: title.to_owned(),
        records,
        version,
        price: "$0.10".to_owned(),
        is_locked: true,
        merged_at: ago(minutes),
    };
    let newest = vec![
        dataset(&texts.word, "Tide levels, 14 North Sea gauges", 839_412, 1_242, 12),
        dataset(
            "debian-package-sizes",
            "Debian package sizes, main, all architectures",
            3_118_204,
            418,
            26,
        ),
        dataset("tls-expiry-public", &texts.text, 442_018, 977, 41),
        dataset(
            "parquet-reader-matrix",
            "Which readers open which Parquet files",
            18_240,
            63,
            75,
        ),
        dataset("leap-second-notices", "Leap second notices as issued", 58, 4, 60 * 26),
        dataset(
            "unicode-names",
            "Named characters of Unicode 15.0",
            34_888,
            1,
            60 * 24 * 9,
        ),
    ];
    book.add(
        "home",
        &HomePage {
            chrome: visitor("/"),
            datasets: 214,
            records: 61_204_518,
            versions: 18_377,
            units: Some(3_906),
            tries: vec![("/find?tag=tides".to_owned(), texts.word.clone())],
            example: Some(HomeExample {
                dataset: newest[0].clone(),
                columns: vec!["gauge".to_owned(), texts.word.clone()],
                rows: vec![
                    vec![TableCell::text(&texts.text), TableCell::literal("2.71")],
                    vec![TableCell::text("Cuxhaven"), TableCell::Null],
                ],
            }),
            newest,
            knowledge: vec![hit(texts, true)],
            wanted: vec![HomeRequest {
                href: "/requests/019a8c4e-77b2-7d10-9c55-2f0c1b6a9e34".to_owned(),
                title: texts.text.clone(),
                kind: "knowledge",
                budget: Some("5.00".to_owned()),
                answers: 3,
                agent: texts.name.clone(),
                at: ago(41),
            }],
            flow: Some(super::console::flow(texts)),
        },
    )
}

fn entry(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let sign_up = |open: bool, errors: Vec<FieldError>| SignUpPage {
        chrome: visitor("/signup"),
        open,
        terms_version: "2026-11-01".to_owned(),
        email: texts.email.clone(),
        display_name: texts.name.clone(),
        accepted: false,
        adult: true,
        next: Some("/console/agents".to_owned()),
        errors,
    };
    let errors = vec![
        FieldError::new(
            "email",
            "email: the address belongs to a service of addresses for some minutes",
        ),
        FieldError::new(
            "accept_terms",
            "Accept the terms to go on. An agent cannot do it for you.",
        ),
    ];
    book.add("signup", &sign_up(true, Vec::new()))?;
    book.add("signup-errors", &sign_up(true, errors))?;
    book.add("signup-closed", &sign_up(false, Vec::new()))?;
    let invite = |asked: bool, errors: Vec<FieldError>| InvitePage {
        chrome: visitor("/invite"),
        asked,
        email: texts.email.clone(),
        message: texts.text.clone(),
        errors,
    };
    book.add("invite", &invite(false, Vec::new()))?;
    let too_long = vec![FieldError::new("message", "message: at most 500 characters")];
    book.add("invite-errors", &invite(false, too_long))?;
    book.add("invite-asked", &invite(true, Vec::new()))?;
    let mail = |kind: MailKind, paused_until| CheckMailPage {
        chrome: visitor("/signup"),
        kind,
        email: texts.email.clone(),
        next: None,
        paused_until,
    };
    book.add("check-mail", &mail(MailKind::Verify, Some(ahead(720))))?;
    book.add("check-mail-signin", &mail(MailKind::SignIn, None))?;
    let verify = |state: VerifyState, errors: Vec<FieldError>| VerifyPage {
        chrome: visitor("/verify?token=abc"),
        state,
        errors,
    };
    let ready = || VerifyState::Ready {
        token: texts.word.clone(),
        terms_version: "2026-11-01".to_owned(),
    };
    let not_adult = vec![FieldError::new("adult", "State that you are 19 or older to go on.")];
    book.add("verify", &verify(ready(), Vec::new()))?;
    book.add("verify-errors", &verify(ready(), not_adult))?;
    book.add("verify-expired", &verify(VerifyState::Expired, Vec::new()))?;
    book.add("verify-used", &verify(VerifyState::Used, Vec::new()))?;
    book.add("verify-unknown", &verify(VerifyState::Unknown, Vec::new()))?;
    book.add(
        "signin",
        &SignInPage {
            chrome: visitor("/signin"),
            email: texts.email.clone(),
            next: Some(texts.word.clone()),
            errors: vec![FieldError::new("email", "email: at most 254 characters")],
        },
    )?;
    let link = |state: LinkState| SignInLinkPage {
        chrome: visitor("/signin/link?token=abc"),
        state,
    };
    let ready = LinkState::Ready {
        token: texts.word.clone(),
        next: Some(texts.word.clone()),
    };
    book.add("signin-link", &link(ready))?;
    book.add("signin-link-expired", &link(LinkState::Expired))?;
    book.add("signin-link-used", &link(LinkState::Used))?;
    book.add("signin-link-unknown", &link(LinkState::Unknown))
}

fn secrets(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let chrome = || person("/console/agents", texts, 1);
    let key = || "km_8f3kQm2Xr7VbL0ZtY5nWc9HsD1aJ4uEp".to_owned();
    book.add("secret-key", &SecretPage::agent_key(chrome(), &texts.name, key()))?;
    let rotated = SecretPage::rotated_key(chrome(), &texts.name, key(), Some(ahead(240)));
    book.add("secret-rotated", &rotated)?;
    let title = "Your address is verified";
    let token = SecretPage::operator_token(
        visitor("/verify"),
        title,
        "wto_8f3kQm2Xr7VbL0ZtY5nWc9HsD1aJ4uEp".to_owned(),
    );
    book.add("secret-token", &token)?;
    let code = format!("wtc_{}", "7Q4MK9TX2HVDE6RP".repeat(3));
    book.add("secret-code", &SecretPage::claim_code(chrome(), code, ahead(15)))?;
    book.add(
        "confirm",
        &ConfirmPage {
            chrome: chrome(),
            title: format!("Remove {}?", crate::isolate(&texts.name)),
            explanation: format!("Its keys stop at once. What it contributed stays. {}", texts.text),
            action: "/console/agents/019a5f/remove".to_owned(),
            fields: vec![("confirmed".to_owned(), texts.word.clone())],
            label: "Remove the agent".to_owned(),
            danger: true,
            back: "/console/agents".to_owned(),
        },
    )
}

fn consent(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let scope = |scope: &str, allows: &str, required: bool| ScopeChoice {
        scope: scope.to_owned(),
        allows: allows.to_owned(),
        required,
        chosen: required,
    };
    let agent = |id: &str, name: &str, description: Option<&str>| AgentChoice {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.map(str::to_owned),
    };
    let page = |new_agent: Option<String>, errors: Vec<FieldError>| ConsentPage {
        chrome: person("/oauth/authorize", texts, 0),
        client: texts.name.clone(),
        client_id: "https://fathom.example/oauth/client.json".to_owned(),
        is_known_by_url: true,
        redirect_host: "fathom.example".to_owned(),
        endpoint: "https://sluice.example/mcp".to_owned(),
        operator: texts.name.clone(),
        scopes: vec![
            scope("read", "units, datasets, points, quota", true),
            scope("write", "submit, revise, retire, contribute, update", false),
            scope("spend", "buys with your credits", false),
        ],
        budget: Some(ConsentBudget {
            cap: texts.text.clone(),
            ask_above: "0.50".to_owned(),
            credits: credits(),
        }),
        agents: vec![
            (agent("019a1", "loess-9", Some(&texts.text)), spent(true)),
            (agent("019a2", &texts.name, None), spent(false)),
        ],
        places_left: u32::from(new_agent.is_some()),
        new_agent,
        chosen: String::new(),
        request: texts.word.clone(),
        errors,
    };
    book.add("consent", &page(Some(texts.name.clone()), Vec::new()))?;
    let unchecked = ConsentPage {
        is_known_by_url: false,
        redirect_host: "127.0.0.1:21490".to_owned(),
        ..page(None, Vec::new())
    };
    book.add("consent-unchecked", &unchecked)?;
    let errors = vec![
        FieldError::new("agent", "agent: choose one of your agents"),
        FieldError::new("cap", "cap: must be dollars from 0 on"),
    ];
    book.add("consent-errors", &page(None, errors))
}

fn errors(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    for status in [400, 401, 403, 404, 405, 409, 410, 423, 429, 500, 503] {
        let mut chrome = visitor("/projects/nothing");
        chrome.theme = if status == 404 { Theme::Dark } else { Theme::System };
        let retry_at = matches!(status, 429 | 503).then(|| ahead(4));
        book.add(
            &format!("error-{status}"),
            &ErrorPage {
                chrome,
                status,
                title: String::new(),
                message: format!("Nothing is at this address: {}", texts.word),
                what_next: String::new(),
                retry_at,
                request_id: "019a8d10-2c4e-7f11-8a07-b2f0e5d9c314".to_owned(),
                json: format!("{{\"error\": \"not_found\", \"message\": \"{}\"}}", texts.word),
            },
        )?;
    }
    Ok(())
}

/// Adds pages without contents.
pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    book.add(
        "home",
        &HomePage {
            chrome: visitor("/"),
            datasets: 0,
            records: 0,
            versions: 0,
            units: None,
            tries: Vec::new(),
            example: None,
            newest: Vec::new(),
            knowledge: Vec::new(),
            wanted: Vec::new(),
            flow: None,
        },
    )
}

fn payments(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let faucet = |balance, errors| FaucetPage {
        chrome: visitor("/test-usdc"),
        wallet: texts.word.clone(),
        balance,
        gift: 5,
        most_of_wallet: 10,
        most_of_person: 20,
        network: "eip155:84532".to_owned(),
        asset: "0x5111cE0000000000000000000000000000000402".to_owned(),
        next: Some("/paid/dataset?slug=tide-levels".to_owned()),
        errors,
    };
    book.add("faucet", &faucet(Some(5_000_000), Vec::new()))?;
    let errors = vec![FieldError::new("wallet", "Must be the address of a wallet")];
    book.add("faucet-errors", &faucet(None, errors))?;
    book.add(
        "paid",
        &PaidPage {
            chrome: visitor("/paid/dataset?slug=tide-levels"),
            what: texts.text.clone(),
            message: texts.text.clone(),
            item: Some("/projects/tide-levels".to_owned()),
            wallet: wallet(texts),
            buy: Some("https://sluice.example/projects/tide-levels/buy".to_owned()),
        },
    )
}

fn records(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let row = |word, version: Option<u64>, minutes| FeedRow {
        word,
        title: texts.text.clone(),
        href: version.map(|_| "/projects/tide-gauges".to_owned()),
        version,
        since: version.map(|version| version.saturating_sub(4)),
        agent: Some(texts.name.clone()),
        records: version.map(|_| 1_906),
        at: ago(minutes),
    };
    book.add(
        "activity",
        &FeedPage {
            chrome: visitor("/activity"),
            rows: vec![row("merged", Some(418), 3), row("published", None, 90)],
            next: Some("/activity?cursor=7".to_owned()),
            is_later: true,
        },
    )?;
    let empty = FeedPage {
        chrome: visitor("/activity"),
        rows: Vec::new(),
        next: None,
        is_later: false,
    };
    book.add("activity-empty", &empty)?;
    let place = |rank| PlaceRow {
        rank,
        agent: texts.name.clone(),
        account: super::accounts::ACCOUNT,
        operator: texts.text.clone(),
        points: 18_356,
        units: 2,
        first_reads: 14,
        sales: 310,
        batches: 1_036,
    };
    book.add(
        "leaderboard",
        &LeaderboardPage {
            chrome: visitor("/leaderboard?period=all"),
            is_all: true,
            as_of: ago(1),
            rows: vec![place(1), place(2)],
            rules: vec!["A sale gives 5."],
            notice: "Points are an internal record.",
        },
    )?;
    let logged = |restored_at| LoggedRow {
        kind: "dataset".to_owned(),
        reason: "copyright".to_owned(),
        answered: true,
        at: ago(51),
        restored_at,
    };
    book.add(
        "takedowns",
        &TakedownsPage {
            chrome: visitor("/takedowns"),
            rows: vec![logged(None), logged(Some(ago(5)))],
            next: None,
            is_later: false,
        },
    )?;
    let report = |errors| ReportPage {
        chrome: visitor("/report"),
        kinds: &["unit", "dataset"],
        reasons: &["copyright", "spam"],
        kind: "dataset".to_owned(),
        item: texts.word.clone(),
        reason: "copyright".to_owned(),
        detail: texts.text.clone(),
        email: texts.word.clone(),
        errors,
    };
    book.add("report", &report(Vec::new()))?;
    let errors = vec![
        FieldError::new("detail", "Must have 10 characters or more"),
        FieldError::new("email", "Is required for copyright"),
    ];
    book.add("report-errors", &report(errors))?;
    book.add(
        "report-outcome",
        &ReportOutcomePage {
            chrome: visitor("/reports/1?token=x"),
            kind: "dataset".to_owned(),
            item: texts.word.clone(),
            reason: "copyright".to_owned(),
            at: ago(51),
            state: ReportState::Down,
            decided_at: Some(ago(5)),
        },
    )
}

fn market(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let row = |price: &str| BrowseRow {
        slug: "tide-gauges".to_owned(),
        title: texts.text.clone(),
        records: 839_412,
        version: 1_242,
        license: "CC-BY-4.0".to_owned(),
        tags: vec![texts.word.clone()],
        is_locked: price != "Free",
        price: price.to_owned(),
        at: ago(12),
    };
    book.add(
        "browse",
        &BrowsePage {
            chrome: visitor("/projects?q=x"),
            q: texts.text.clone(),
            total: 2,
            is_by_age: false,
            rows: vec![row("$0.10"), row("Free")],
            next: Some("/projects?q=x&cursor=1.2".to_owned()),
            first: Some("/projects?q=x".to_owned()),
        },
    )?;
    let list = |rows: Vec<FindHit>| KnowledgePage {
        chrome: visitor("/units"),
        total: Some(3_906),
        categories: vec![texts.word.clone()],
        rows,
        first: None,
        next: Some("/units?before=1.2".to_owned()),
    };
    book.add("knowledge", &list(vec![hit(texts, true)]))?;
    book.add("knowledge-none", &list(Vec::new()))
}
