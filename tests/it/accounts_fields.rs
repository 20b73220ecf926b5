//! Fields of accounts at their limits: the last value that is taken, and the first that is not.

use serde_json::{Value, json};
use tests::world::merged;

use crate::accounts::Site;

/// Code of a violation of the form of a field.
const INVALID: &str = "invalid_request";

/// An e-mail address of this many characters, its parts as long as they may be.
fn email(characters: usize) -> String {
    let end = ".example.org";
    let begin = format!("{}@{}.{}.", "a".repeat(60), "b".repeat(63), "c".repeat(63));
    let label = "d".repeat(characters - begin.len() - end.len());
    format!("{begin}{label}{end}")
}

fn text(characters: usize) -> String {
    // Characters count, not bytes.
    "é".repeat(characters)
}

fn word(characters: usize) -> String {
    "x".repeat(characters)
}

/// A value of a member, and the status and the code that it is answered with.
type Case = (&'static str, Value, u16, &'static str);

/// Tells if an answer to a case is another one than expected.
fn difference(path: &str, (member, value, status, code): &Case, answer: &tests::Answer) -> Option<String> {
    let names_member = answer.paths().contains(&format!("/{member}").as_str());
    let is_as_expected = answer.code() == *status && answer.error() == *code && (*status != 400 || names_member);
    let length = value.as_str().map_or_else(
        || value.to_string(),
        |text| format!("{} characters", text.chars().count()),
    );
    let (got, body) = (answer.code(), &answer.body);
    (!is_as_expected).then(|| format!("{path} {member} ({length}): {status} {code} expected, {got} {body} came"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_of_accounts_is_taken_up_to_its_limit_and_no_further() {
    let site = Site::start(None, |options| {
        options.with("SLUICE__LIMITS__AGENTS_PER_OPERATOR", 1_000)
    })
    .await;
    let operator = site.operator("ada@example.org").await;
    let owner = site.http.with(&site.token(operator).await);
    let mut wrong = Vec::new();

    let sign_ups: [Case; 18] = [
        ("email", json!(email(254)), 201, ""),
        ("email", json!(email(255)), 400, INVALID),
        ("email", json!(""), 400, INVALID),
        ("email", json!(format!("{}@example.org", word(64))), 201, ""),
        ("email", json!(format!("{}@example.org", word(65))), 400, INVALID),
        ("email", json!(format!("a@{}.org", word(63))), 201, ""),
        ("email", json!(format!("a@{}.org", word(64))), 400, INVALID),
        ("email", Value::Null, 400, INVALID),
        ("displayName", json!(""), 400, INVALID),
        ("displayName", json!(text(1)), 201, ""),
        ("displayName", json!(text(80)), 201, ""),
        ("displayName", json!(text(81)), 400, INVALID),
        ("displayName", json!("a\nb"), 400, INVALID),
        ("displayName", Value::Null, 400, INVALID),
        ("acceptTerms", json!(word(40)), 400, "terms_not_accepted"),
        ("acceptTerms", json!(word(41)), 400, INVALID),
        ("acceptTerms", json!(""), 400, "terms_not_accepted"),
        ("acceptTerms", Value::Null, 400, "terms_not_accepted"),
    ];
    for (number, case) in sign_ups.iter().enumerate() {
        let good = json!({
            "email": format!("person-{number}@example.org"), "displayName": "Ada", "acceptTerms": "2026-11-01",
        });
        // A null leaves the member out.
        let body = merged(good, json!({case.0: case.1}));
        let answer = site.http.post("/operators", &body).await;
        wrong.extend(difference("/operators", case, &answer));
    }

    let resends: [Case; 3] = [
        ("email", json!(email(254)), 200, ""),
        ("email", json!(email(255)), 400, INVALID),
        ("email", Value::Null, 400, INVALID),
    ];
    for case in &resends {
        let answer = site
            .http
            .post("/operators/resend", &merged(json!({}), json!({case.0: case.1})))
            .await;
        wrong.extend(difference("/operators/resend", case, &answer));
    }

    let tokens: [Case; 5] = [
        ("token", json!(""), 400, INVALID),
        ("token", json!(word(1)), 400, "token_unknown"),
        ("token", json!(word(200)), 400, "token_unknown"),
        ("token", json!(word(201)), 400, INVALID),
        ("token", Value::Null, 400, INVALID),
    ];
    for case in &tokens {
        let answer = site
            .http
            .post("/operators/verify", &merged(json!({}), json!({case.0: case.1})))
            .await;
        wrong.extend(difference("/operators/verify", case, &answer));
    }

    let agents: [Case; 8] = [
        ("name", json!(""), 400, INVALID),
        ("name", json!("q"), 201, ""),
        ("name", json!(word(60)), 201, ""),
        ("name", json!(word(61)), 400, INVALID),
        ("name", Value::Null, 400, INVALID),
        ("walletAddress", json!(""), 201, ""),
        ("walletAddress", json!(word(100)), 201, ""),
        ("walletAddress", json!(word(101)), 400, INVALID),
    ];
    for (number, case) in agents.iter().enumerate() {
        let body = merged(json!({"name": format!("agent-{number}")}), json!({case.0: case.1}));
        let answer = owner.post("/agents", &body).await;
        wrong.extend(difference("/agents", case, &answer));
    }

    let claims: [Case; 12] = [
        ("code", json!(""), 400, INVALID),
        ("code", json!(word(64)), 400, "claim_code_unknown"),
        ("code", json!(word(65)), 400, INVALID),
        ("code", Value::Null, 400, INVALID),
        ("name", json!(""), 400, INVALID),
        ("name", json!("z"), 202, ""),
        ("name", json!("y".repeat(60)), 202, ""),
        ("name", json!("y".repeat(61)), 400, INVALID),
        ("name", Value::Null, 400, INVALID),
        ("description", json!(""), 202, ""),
        ("description", json!(text(280)), 202, ""),
        ("description", json!(text(281)), 400, INVALID),
    ];
    for (number, case) in claims.iter().enumerate() {
        let good = json!({"code": site.code(operator).await, "name": format!("claimant-{number}")});
        let answer = site
            .http
            .post("/agents/claim", &merged(good, json!({case.0: case.1})))
            .await;
        wrong.extend(difference("/agents/claim", case, &answer));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
