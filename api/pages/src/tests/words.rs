use types::vocabulary::StaffRole;

use crate::console::{ActivityRow, Attention, ChangeActor, ContributionRow, ContributionState};
use crate::number::{counted, grouped, price, size};
use crate::testing::samples;
use crate::{ErrorPage, Instant, Page, PageLayout, Person, SecretPage, SignUpPage, TermsPage, Theme, isolate};

const NOW: Instant = Instant(1_795_435_200_000_000);

fn after(seconds: i64) -> Instant {
    Instant(NOW.0 + seconds * 1_000_000)
}

fn text_of(element: &impl ToString) -> String {
    let element = element.to_string();
    element.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned()
}

#[test]
fn a_time_is_relative_up_to_a_week_and_then_a_date() {
    let hour = 3_600;
    for (seconds, words) in [
        (0, "just now"),
        (-59, "just now"),
        (30, "in less than a minute"),
        (-60, "1 min ago"),
        (59 * 60 + 59, "in 59 min"),
        (-hour, "1 h ago"),
        (-23 * hour - 3_599, "23 h ago"),
        (-24 * hour, "1 day ago"),
        (6 * 24 * hour, "in 6 days"),
        (-7 * 24 * hour + 1, "6 days ago"),
        (-7 * 24 * hour, "16 Nov 2026"),
        (7 * 24 * hour, "30 Nov 2026"),
    ] {
        assert_eq!(text_of(&after(seconds).relative(NOW)), words, "{seconds}");
    }
}

#[test]
fn a_time_carries_its_full_value() {
    let element = after(-60).relative(NOW).to_string();
    assert!(element.starts_with("<time datetime=\"2026-11-23T11:59:00Z\" title=\"23 November 2026, 11:59 UTC\">"));
    assert_eq!(text_of(&NOW.full()), "23 November 2026, 12:00 UTC");
    assert_eq!(text_of(&NOW.date()), "23 Nov 2026");
    // A broken row does not break the page.
    assert_eq!(text_of(&Instant(i64::MAX).full()), "?");
    assert_eq!(text_of(&Instant(i64::MIN).relative(NOW)), "?");
}

#[test]
fn a_countdown_works_without_a_script() {
    for (seconds, words) in [
        (-1, "expired"),
        (0, "expired"),
        (9, "00:09"),
        (761, "12:41"),
        (2 * 3_600 + 300, "2 h 05 min"),
    ] {
        assert_eq!(text_of(&after(seconds).until(NOW)), words, "{seconds}");
    }
    assert!(
        after(9)
            .until(NOW)
            .to_string()
            .contains("data-until=\"2026-11-23T12:00:09Z\"")
    );
}

#[test]
fn numbers_have_separators() {
    let cases = [
        (0, "0"),
        (999, "999"),
        (1_000, "1,000"),
        (61_204_518, "61,204,518"),
        (u64::MAX, "18,446,744,073,709,551,615"),
    ];
    for (number, words) in cases {
        assert_eq!(grouped(number), words);
    }
    for (micro, words) in [
        (0, "0"),
        (40, "0.00004"),
        (45_000, "0.045"),
        (500_000, "0.50"),
        (12_340_000, "12.34"),
    ] {
        assert_eq!(price(micro), words);
    }
    assert_eq!(counted(1, "duplicate", "duplicates"), "1 duplicate");
    assert_eq!(counted(1_200, "duplicate", "duplicates"), "1,200 duplicates");
    for (bytes, words) in [
        (0, "0 bytes"),
        (1_023, "1,023 bytes"),
        (1_536, "1.5 KiB"),
        (50_873_562, "48 MiB"),
        (5 << 30, "5.0 GiB"),
    ] {
        assert_eq!(size(bytes), words);
    }
}

#[test]
fn an_isolated_name_cannot_end_its_isolation() {
    assert_eq!(isolate("a\u{2069}b\u{2066}"), "\u{2068}ab\u{2069}");
    let claim = Attention::claim("mooring-3", NOW, after(60));
    assert_eq!(
        claim.what,
        "An agent that calls itself \u{2068}mooring-3\u{2069} wants to join"
    );
}

fn chrome(path: &str, theme: Theme) -> PageLayout {
    PageLayout {
        theme,
        person: Some(Person {
            email: "ops@harbour-lab.example".to_owned(),
            role: None,
        }),
        form_token: "token".to_owned(),
        path: path.to_owned(),
        waits: [
            "/console/approvals/1",
            "/console/disputes/2",
            "/console/contributions/3",
        ]
        .map(str::to_owned)
        .into(),
        credits: None,
        now: NOW,
        base: "https://sluice.example".to_owned(),
    }
}

fn missing(path: &str, theme: Theme) -> String {
    let page = ErrorPage {
        chrome: chrome(path, theme),
        status: 404,
        title: String::new(),
        message: "there is no such page".to_owned(),
        what_next: String::new(),
        retry_at: None,
        request_id: "r".to_owned(),
        json: "{}".to_owned(),
    };
    page.html().unwrap()
}

#[test]
fn the_rail_stands_in_the_console_and_marks_the_place() {
    let page = missing("/console/agents/019/remove?x=1", Theme::System);
    assert!(page.contains("<a href=\"/console/agents\" aria-current=\"page\">Agents &#38; keys</a>"));
    assert_eq!(page.matches("aria-current").count(), 1);
    assert!(page.contains("<span class=\"n hot\">3<span class=\"vh\"> need you</span></span>"));
    // Each matter counts at its page too.
    for badge in ["Money<span class=\"n hot\">2<", "Contributions<span class=\"n hot\">1<"] {
        assert!(page.contains(badge), "{badge}: {page}");
    }
    assert!(page.contains("<span>Agents &#38; keys</span><span class=\"n hot\">3 need you</span>"));
    let page = missing("/console", Theme::System);
    assert!(page.contains("<a href=\"/console\" aria-current=\"page\">Overview"));
    for outside in ["/", "/consoles", "/terms"] {
        assert!(!missing(outside, Theme::System).contains("class=\"rail\""), "{outside}");
    }
}

#[test]
fn the_rail_has_the_pages_of_the_service_for_staff_alone() {
    let page = |role: Option<StaffRole>| {
        let mut layout = chrome("/console/moderation", Theme::System);
        layout.person = layout.person.map(|person| Person { role, ..person });
        let page = ErrorPage {
            chrome: layout,
            status: 404,
            title: String::new(),
            message: "there is no such page".to_owned(),
            what_next: String::new(),
            retry_at: None,
            request_id: "r".to_owned(),
            json: "{}".to_owned(),
        };
        page.html().unwrap()
    };
    for role in [None, Some(StaffRole::Moderator), Some(StaffRole::Administrator)] {
        let (page, is_staff) = (page(role), role.is_some());
        assert_eq!(page.contains("href=\"/console/operators\""), is_staff);
        assert_eq!(
            page.contains("href=\"/console/figures\""),
            role == Some(StaffRole::Administrator)
        );
        assert_eq!(page.contains("<li class=\"cap\">Service</li>"), is_staff);
        let reports = "<a href=\"/console/moderation\" aria-current=\"page\">Reports</a>";
        assert_eq!(page.matches(reports).count(), 1, "{is_staff}");
        assert!(
            page.contains("<span>Reports</span>"),
            "the menu says where the reader is"
        );
    }
}

#[test]
fn the_theme_is_on_the_page_and_its_form_leads_back() {
    for (theme, own) in [
        (Theme::System, "<html lang=\"en\">"),
        (Theme::Dark, "<html lang=\"en\" data-theme=\"dark\">"),
        (Theme::Light, "<html lang=\"en\" data-theme=\"light\">"),
    ] {
        let page = missing("/terms?x=\"1\"", theme);
        assert!(page.contains(own));
        for other in [Theme::System, Theme::Dark, Theme::Light] {
            let button = format!(
                "name=\"theme\" value=\"{}\" aria-pressed=\"{}\"",
                other.word(),
                other == theme
            );
            assert!(page.contains(&button), "{button}");
        }
        assert!(page.contains("name=\"return_to\" value=\"/terms?x=&#34;1&#34;\""));
        assert_eq!(Theme::of(theme.word()), theme);
    }
    assert_eq!(Theme::of("purple"), Theme::System);
}

#[test]
fn a_page_of_a_query_or_of_an_account_is_kept_out_of_search_engines() {
    for (path, is_listed) in [
        ("/terms", true),
        ("/terms?x=1", false),
        ("/console", false),
        ("/console/money", false),
    ] {
        let page = TermsPage::new(chrome(path, Theme::System), "Terms", "2026-11-01", "# Terms").html();
        let page = page.unwrap();
        assert_eq!(
            page.contains("<meta name=\"robots\" content=\"noindex\">"),
            !is_listed,
            "{path}"
        );
        let canonical = format!("<link rel=\"canonical\" href=\"https://sluice.example{path}\">");
        assert_eq!(page.contains(&canonical), is_listed, "{path}");
    }
    assert!(missing("/nothing", Theme::System).contains("content=\"noindex\""));
}

#[test]
fn an_operation_has_words_even_if_it_is_new() {
    let row = |operation: &str| ActivityRow {
        at: NOW,
        actor: ChangeActor::Person,
        operation: operation.to_owned(),
        subject: None,
        request_id: String::new(),
    };
    assert_eq!(row("create_dataset").words(), "made a dataset");
    assert_eq!(row("paint_boat").words(), "paint boat");
    assert_eq!(
        row("console/create_dataset").words(),
        "made a dataset, for you in the console"
    );
}

#[test]
fn a_contribution_says_what_became_of_its_rows() {
    let row = |state: ContributionState, accepted: Option<u64>, reason: Option<&str>| ContributionRow {
        id: "019a8d10-2c4e-7f11-8a07-b2f0e5d9c314".to_owned(),
        dataset: "tide-levels".to_owned(),
        agent: "mooring-3".to_owned(),
        records: 84,
        state,
        version: None,
        accepted,
        reason: reason.map(str::to_owned),
        at: NOW,
    };
    assert_eq!(row(ContributionState::Merged, Some(84), None).result(), "84 accepted");
    assert_eq!(
        row(ContributionState::Merged, Some(60), None).result(),
        "60 accepted, 24 duplicates dropped"
    );
    assert_eq!(
        row(ContributionState::Rejected, None, Some("no row is new")).result(),
        "no row is new"
    );
    assert_eq!(row(ContributionState::Waiting, None, None).result(), "in the queue");
    assert_eq!(
        row(ContributionState::Merged, None, None).short_id(),
        "019a8d10-…-b2f0e5d9c314"
    );
    for state in ContributionState::ALL {
        assert_eq!(ContributionState::of(state.word()), Some(state));
    }
    assert_eq!(ContributionState::of("lost"), None);
}

#[test]
fn a_secret_comes_with_the_call_that_uses_it() {
    let page = SecretPage::claim_code(
        chrome("/console/codes", Theme::System),
        "wtc_abc".to_owned(),
        after(900),
    );
    let html = page.html().unwrap();
    assert!(html.contains("https://sluice.example/agents/claim"));
    assert_eq!(
        html.matches("wtc_abc").count(),
        3,
        "the code, the words for the agent, the call"
    );
    assert!(html.contains("23 November 2026, 12:15 UTC"));
}

#[test]
fn sign_up_by_invitation_leads_to_the_invitation() {
    let samples = samples().unwrap();
    let page = |name: &str| samples.iter().find(|sample| sample.name == name).unwrap().html.clone();
    assert!(page("signup-closed").contains("href=\"/invite\""));
    assert!(!page("signup").contains("href=\"/invite\""));
}

#[test]
fn a_form_carries_the_next_path_only_if_there_is_one() {
    let page = |next: Option<&str>| {
        let page = SignUpPage {
            chrome: chrome("/signup", Theme::System),
            open: true,
            terms_version: "2026-11-01".to_owned(),
            email: String::new(),
            display_name: String::new(),
            accepted: true,
            adult: false,
            next: next.map(str::to_owned),
            errors: Vec::new(),
        };
        page.html().unwrap()
    };
    assert!(page(Some("/console")).contains("<input type=\"hidden\" name=\"next\" value=\"/console\">"));
    let without = page(None);
    assert!(!without.contains("name=\"next\""));
    assert!(without.contains("name=\"accept_terms\" value=\"2026-11-01\" required checked"));
    assert!(without.contains("name=\"adult\" value=\"yes\" required>"));
}
