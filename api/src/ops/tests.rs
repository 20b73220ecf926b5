use std::collections::HashSet;
use std::time::Duration;
use types::{HumanDuration, Size};

use serde_json::{Value, json};

use http::Method;

use super::*;
use crate::call::operation::Operation;
use crate::call::spec::{ANYBODY, ApiKind, Credential, Effect, GuardedItem, ParamLocation, SESSION, Scope};
use crate::testing::{self, count};

mod repeats;
mod visibility;

fn table() -> Operations {
    all(&testing::limits())
}

fn placeholders(operation: &Operation) -> Vec<&str> {
    let inside = |segment: &'static str| segment.strip_prefix('{')?.strip_suffix('}');
    operation.spec.path.split('/').filter_map(inside).collect()
}

#[test]
fn every_operation_has_a_name_and_a_route_of_its_own() {
    let (mut names, mut routes) = (HashSet::new(), HashSet::new());
    for operation in table().iter() {
        let spec = &operation.spec;
        assert!(names.insert(spec.name), "{}", spec.name);
        assert!(
            routes.insert((spec.method.clone(), spec.path, spec.surface)),
            "{}",
            spec.path
        );
        assert!(!spec.summary.is_empty() && !spec.tag.is_empty(), "{}", spec.name);
    }
}

#[test]
fn what_reaches_a_schema_as_an_outline_could_not_break_it() {
    let table = table();
    let raw_bodies = table
        .iter()
        .filter_map(|operation| Some((operation, operation.spec.raw_body_member?)));
    let names = raw_bodies.map(|(operation, member)| {
        assert_eq!(
            operation.spec.location_of(member),
            ParamLocation::Body,
            "{}",
            operation.spec.name
        );
        let items = &operation.input.property(member).unwrap()["items"];
        assert_eq!(*items, json!({"type": "object", "additionalProperties": true}));
        operation.spec.name
    });
    assert_eq!(names.collect::<Vec<_>>(), ["contribute_records"]);
}

/// Operations of programs in their order, each with its callers and its scope.
const PERMISSIONS: [&str; 118] = [
    "GET /healthz Public Read",
    "GET /readyz Public Read",
    "GET /openapi.json Public Read",
    "GET /licenses Public Read",
    "GET /terms/version Public Read",
    "GET /signup/status Public Read",
    "GET /terms Public Read",
    "GET /licenses/platform-standard Public Read",
    "GET /guide/agents.md Public Read",
    "GET /llms.txt Public Read",
    "GET /skill.md Public Read",
    "GET /guide/errors.md Public Read",
    "GET /changelog.md Public Read",
    "GET /guide/personal-data.md Public Read",
    "GET /guide/publish.md Public Read",
    "GET /guide/sell.md Public Read",
    "GET /guide/buy.md Public Read",
    "GET /guide/answer.md Public Read",
    "GET /guide/connect.md Public Read",
    "POST /operators Public Write",
    "POST /operators/resend Public Write",
    "POST /operators/verify Public Write",
    "POST /agents Operator Write",
    "POST /agents/claim Public Write",
    "GET /agents/claim/status ClaimedKey Read",
    "POST /agents/login Public Write",
    "GET /me Own Any",
    "GET /me/knowledge Own Read",
    "GET /me/contributions Own Read",
    "GET /me/requests Own Read",
    "GET /me/purchases Own Read",
    "GET /.well-known/oauth-authorization-server Public Read",
    "GET /.well-known/oauth-protected-resource/mcp Public Read",
    "GET /.well-known/oauth-protected-resource/mcp/directory Public Read",
    "POST /oauth/register Public Write",
    "POST /oauth/token Public Write",
    "POST /oauth/revoke Public Write",
    "POST /projects KeyOrOperator Write",
    "GET /projects Optional Read",
    "GET /projects/{slug} Optional Read",
    "PATCH /projects/{slug} KeyOrOperator Write",
    "DELETE /projects/{slug} KeyOrOperator Write",
    "POST /projects/{slug}/contribute Key Write",
    "POST /projects/{slug}/uploads Key Write",
    "POST /projects/{slug}/uploads/{id}/complete Key Write",
    "GET /projects/{slug}/uploads Key Read",
    "DELETE /projects/{slug}/uploads/{id} Key Write",
    "GET /projects/{slug}/contributions/{id} Key Read",
    "GET /projects/{slug}/contributions/{id}/verdicts Key Read",
    "POST /projects/{slug}/validate Key Write",
    "POST /files/infer KeyOrOperator Write",
    "POST /files/convert KeyOrOperator Write",
    "GET /projects/{slug}/profile Optional Read",
    "GET /projects/{slug}/preview Optional Read",
    "GET /projects/{slug}/data Key Read",
    "POST /projects/{slug}/query Key Read",
    "GET /projects/{slug}/export Key Read",
    "GET /projects/{slug}/diff Optional Read",
    "GET /projects/{slug}/manifest Key Read",
    "GET /parts/{dataset}/{name} Public Read",
    "POST /knowledge Key Write",
    "POST /knowledge/{id}/revise Key Write",
    "POST /knowledge/validate Key Write",
    "POST /knowledge/{id}/appeal Key Write",
    "GET /knowledge/{id} Key Read",
    "GET /knowledge/{id}/full Optional Read",
    "PUT /knowledge/{id}/price Key Write",
    "POST /knowledge/{id}/retire Key Write",
    "POST /knowledge/{id}/review Key Write",
    "GET /knowledge/{id}/reviews Public Read",
    "POST /knowledge/{id}/mark Key Write",
    "POST /knowledge/{id}/comments Key Write",
    "GET /knowledge/{id}/comments Public Read",
    "GET /points Key Read",
    "GET /leaderboard Public Read",
    "GET /quota Key Read",
    "GET /pricing.json Public Read",
    "POST /projects/{slug}/buy Key Spend",
    "POST /knowledge/{id}/buy Key Spend",
    "GET /credits Key Read",
    "GET /earnings Key Read",
    "GET /paid/knowledge Public Spend",
    "GET /paid/dataset Public Spend",
    "GET /paid/credits Public Spend",
    "GET /operators/payout-proof Operator Read",
    "POST /operators/payout-proof Operator Write",
    "POST /faucet Optional Write",
    "GET /receipts/{id} KeyOrWallet Read",
    "POST /disputes KeyOrOperator Write",
    "GET /disputes KeyOrOperator Read",
    "GET /disputes/{id} KeyOrOperator Read",
    "POST /disputes/{id}/answer KeyOrOperator Write",
    "POST /disputes/{id}/refund KeyOrOperator Spend",
    "GET /search Public Read",
    "POST /reports Optional Write",
    "GET /reports/{id} Optional Read",
    "GET /takedowns Public Read",
    "GET /activity Public Read",
    "GET /activity.atom Public Read",
    "GET /activity/events Public Read",
    "POST /community/requests KeyOrApp Write",
    "GET /community/requests AnyoneOrApp Read",
    "GET /community/requests/{id} Public Read",
    "GET /community/t/{id}/comments Public Read",
    "POST /community/requests/{id}/answers Key Write",
    "POST /community/requests/{id}/choose Key Write",
    "POST /community/requests/{id}/close Key Write",
    "POST /community/reviews Key Write",
    "GET /community/reviews Public Read",
    "POST /projects/{slug}/comments Key Write",
    "GET /projects/{slug}/comments Optional Read",
    "PATCH /community/comments/{number} Key Write",
    "POST /community/comments/{number}/withdraw Key Write",
    "GET /collectors Public Read",
    "GET /.well-known/service-keys Public Read",
    "GET /.well-known/did.json Public Read",
    "GET /robots.txt Public Read",
    "GET /sitemap.xml Public Read",
];

#[test]
fn permissions_are_those_of_the_interface() {
    let permissions: Vec<String> = table()
        .iter()
        .filter(|operation| operation.spec.surface == ApiKind::Rest)
        .map(|operation| {
            let spec = &operation.spec;
            let accepted = match spec.accepts {
                [] => "Public",
                [Credential::AgentKey] => "Key",
                [Credential::OperatorToken] => "Operator",
                [Credential::AgentKey, Credential::OperatorToken] => "KeyOrOperator",
                [Credential::AgentKey, Credential::OperatorToken, Credential::AppToken] => "Own",
                [Credential::Anonymous, Credential::AgentKey, Credential::OperatorToken] => "Optional",
                [Credential::Anonymous, Credential::AgentKey] => "KeyOrWallet",
                [Credential::ClaimedKey, Credential::AgentKey] => "ClaimedKey",
                [Credential::AgentKey, Credential::AppToken] => "KeyOrApp",
                [Credential::Anonymous, Credential::AgentKey, Credential::AppToken] => "AnyoneOrApp",
                _ => "other",
            };
            let scope = if spec.any_scope {
                "Any".to_owned()
            } else {
                format!("{:?}", spec.scope)
            };
            format!("{} {} {accepted} {scope}", spec.method, spec.path)
        })
        .collect();
    assert_eq!(permissions, PERMISSIONS);
}

#[test]
fn a_page_of_the_console_needs_a_session_and_a_form_is_posted() {
    // Forms of people that change nothing. They are forms so that no other site sends them.
    const READING: [(&str, &str); 2] = [
        ("download_form", "/projects/{slug}/download"),
        ("sql_form", "/projects/{slug}/sql"),
    ];
    let table = table();
    let pages = table.iter().filter(|operation| operation.spec.surface == ApiKind::Page);
    for operation in pages {
        let spec = &operation.spec;
        let is_console =
            spec.path.starts_with("/console") || ["/signin/again", "/oauth/authorize"].contains(&spec.path);
        // What a person says of a unit, an agent of the account says for it.
        let is_console = is_console || (spec.path.starts_with("/units/") && spec.method == Method::POST);
        let is_reading = READING.contains(&(spec.name, spec.path));
        // A visitor's statement is there again after signing in, and so is what a person typed who was signed out.
        let is_kept = spec.name == "sql_form" || spec.keeps_form;
        let accepted = if (is_console || is_reading) && !is_kept {
            SESSION
        } else {
            ANYBODY
        };
        assert_eq!(spec.accepts, accepted, "{}", spec.name);
        // Forms are protected by their method: a GET must change nothing.
        assert_eq!(
            spec.method == Method::POST,
            is_reading || spec.effect != Effect::Read,
            "{}",
            spec.name
        );
        assert!(
            spec.method == Method::POST || spec.method == Method::GET,
            "{}",
            spec.name
        );
    }
}

#[test]
fn what_changes_something_needs_a_credential_and_more_than_read() {
    for operation in table().iter() {
        let spec = &operation.spec;
        if spec.effect != Effect::Read {
            let is_open = !spec.reads_credential() || spec.accepts(Credential::Anonymous);
            // A person without an account acts, or the code in the body is the credential.
            let may_be_open = [
                "report_content",
                "sign_up",
                "resend_verification",
                "verify_operator",
                "claim_agent",
                "begin_login",
                "oauth_token",
                "oauth_revoke",
                "register_app",
                // The payment is the credential.
                "buy_knowledge",
                "pay_dataset",
                "pay_credits",
                // It gives to whoever asks, within the bounds of a day.
                "faucet",
                "faucet_form",
                "sign_up_form",
                "resend_verification_form",
                "verify_operator_form",
                "sign_in_form",
                "sign_in_link_request",
                "sign_out_form",
                "theme_form",
                "invite_form",
                "report_form",
                // The token of a link is the credential.
                "confirm_email_form",
                "stop_email_form",
                // Without a session it shows what was typed once more.
                "edit_dataset_form",
            ]
            .contains(&spec.name);
            assert!(is_open == may_be_open && spec.scope != Scope::Read, "{}", spec.name);
        }
    }
}

#[test]
fn every_operation_on_a_project_names_it_as_its_item() {
    for operation in table()
        .iter()
        .filter(|operation| operation.spec.surface == ApiKind::Rest)
    {
        let spec = &operation.spec;
        let has_project = placeholders(operation).contains(&"slug");
        let is_project = matches!(
            spec.item,
            GuardedItem::Project | GuardedItem::Records | GuardedItem::OwnProject
        );
        assert_eq!(is_project, has_project, "{}", spec.name);
        // Whoever adds to a project need not own it. Only a change of the project itself is its operator's.
        assert_eq!(
            spec.item == GuardedItem::OwnProject,
            has_project && (spec.method == Method::PATCH || spec.name == "delete_dataset"),
            "{}",
            spec.name
        );
    }
}

/// A stranger's 404 outranks an error in a body. Calls without a body have nothing to outrank.
#[test]
fn every_change_of_a_unit_names_it_as_its_item() {
    let table = table();
    let of_units = table
        .iter()
        .filter(|operation| operation.spec.path.starts_with("/knowledge/{id}"));
    for operation in of_units {
        let spec = &operation.spec;
        // A purchase has no body.
        if spec.name == "buy_knowledge_with_credits" {
            continue;
        }
        let is_unit = matches!(spec.item, GuardedItem::Unit | GuardedItem::OwnUnit);
        let is_own = spec.accepts == [Credential::AgentKey]
            && !["rate_knowledge", "mark_knowledge", "comment_on_knowledge"].contains(&spec.name);
        assert_eq!(is_unit, spec.accepts == [Credential::AgentKey], "{}", spec.name);
        assert_eq!(spec.item == GuardedItem::OwnUnit, is_own, "{}", spec.name);
    }
}

#[test]
fn every_input_refuses_unknown_members() {
    // The endpoints of OAuth ignore them (RFC 6749 section 3.1).
    for operation in table().iter().filter(|operation| !operation.spec.opaque) {
        let name = operation.spec.name;
        assert_eq!(operation.input.document["additionalProperties"], false, "{name}");
        let error = operation.input.check(&json!({"surprise": 1}), &[]).unwrap_err();
        assert_eq!(error.status().as_u16(), 400, "{name}: {error:?}");
        assert!(error.body("r").to_string().contains("/surprise"), "{name}");
    }
}

#[test]
fn what_a_spec_names_is_in_its_input() {
    for operation in table().iter() {
        let (name, spec) = (operation.spec.name, &operation.spec);
        for member in placeholders(operation) {
            assert!(operation.input.requires(member), "{name} {member}");
            assert_eq!(spec.location_of(member), ParamLocation::Path);
        }
        let headers = spec.headers.iter().map(|(member, _)| member);
        for member in spec.query.iter().chain(headers) {
            assert!(operation.input.property(member).is_some(), "{name} {member}");
        }
        for member in spec.immutable {
            assert!(operation.input.property(member).is_none(), "{name} {member}");
        }
        let described = |(_, schema): (&String, &Value)| schema["description"].is_string();
        assert!(operation.input.properties().all(described), "{name}");
    }
}

#[test]
fn every_example_satisfies_its_schema() {
    for operation in table()
        .iter()
        .filter(|operation| operation.spec.surface == ApiKind::Rest)
    {
        assert_eq!(
            operation.has_body(),
            !operation.spec.example.is_empty(),
            "{}",
            operation.spec.name
        );
        if operation.spec.example.is_empty() {
            continue;
        }
        let mut input: Value = serde_json::from_str(operation.spec.example).unwrap();
        for member in placeholders(operation) {
            let text = match member {
                "id" => "0197b3c0-0000-7000-8000-000000000001",
                "number" => "7",
                _ => "tide-gauges",
            };
            input[member] = text.into();
        }
        operation.input.check(&input, &[]).unwrap();
    }
}

#[test]
fn limits_of_the_configuration_are_published() {
    let mut limits = testing::limits();
    limits.records_per_contribution = count(7);
    limits.wait = HumanDuration(Duration::from_secs(3));
    limits.page_records = count(11);
    limits.diff_records = count(12);
    limits.query_rows = count(13);
    limits.query_characters = count(14);
    limits.upload = Size(15);
    let table = all(&limits);
    let schema = |name: &str, member: &str| table.get(name).unwrap().input.property(member).unwrap().clone();
    assert_eq!(schema("contribute_records", "records")["maxItems"], 7);
    assert_eq!(schema("validate_records", "records")["maxItems"], 7);
    assert_eq!(schema("contribute_records", "wait")["maximum"], 3);
    assert_eq!(schema("contribution_status", "wait")["maximum"], 3);
    assert_eq!(schema("read_dataset", "limit")["maximum"], 11);
    assert_eq!(schema("dataset_diff", "limit")["maximum"], 12);
    assert_eq!(schema("query_dataset", "limit")["maximum"], 13);
    assert_eq!(schema("query_dataset", "sql")["maxLength"], 14);
    assert_eq!(schema("begin_upload", "bytes")["maximum"], 15);
}
