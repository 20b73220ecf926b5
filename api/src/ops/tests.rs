use std::collections::HashSet;

use serde_json::{Value, json};

use super::*;
use crate::operation::{Credential, Effect, Item, Operation, ParamLocation, Scope};
use crate::testing;

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
        assert!(routes.insert((spec.method.clone(), spec.path)), "{}", spec.path);
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

#[test]
fn permissions_are_those_of_the_interface() {
    let permissions: Vec<String> = table()
        .iter()
        .map(|operation| {
            let spec = &operation.spec;
            let accepted = match spec.accepts {
                [] => "Public",
                [Credential::AgentKey] => "Key",
                [Credential::OperatorToken] => "Operator",
                [Credential::AgentKey, Credential::OperatorToken] => "KeyOrOperator",
                [Credential::Anonymous, Credential::AgentKey, Credential::OperatorToken] => "Optional",
                [Credential::ClaimedKey, Credential::AgentKey] => "ClaimedKey",
                _ => "other",
            };
            format!("{} {} {accepted} {:?}", spec.method, spec.path, spec.scope)
        })
        .collect();
    assert_eq!(
        permissions,
        [
            "GET /healthz Public Read",
            "GET /readyz Public Read",
            "GET /openapi.json Public Read",
            "GET /licenses Public Read",
            "GET /terms/version Public Read",
            "GET /signup/status Public Read",
            "GET /terms Public Read",
            "GET /licenses/platform-standard Public Read",
            "GET /guide/agents.md Public Read",
            "GET /guide/errors.md Public Read",
            "POST /operators Public Write",
            "POST /operators/resend Public Write",
            "POST /operators/verify Public Write",
            "POST /agents Operator Write",
            "POST /agents/claim Public Write",
            "GET /agents/claim/status ClaimedKey Read",
            "POST /projects KeyOrOperator Write",
            "GET /projects Optional Read",
            "GET /projects/{slug} Optional Read",
            "PATCH /projects/{slug} KeyOrOperator Write",
            "POST /projects/{slug}/contribute Key Write",
            "POST /projects/{slug}/uploads Key Write",
            "POST /projects/{slug}/uploads/{id}/complete Key Write",
            "GET /projects/{slug}/contributions/{id} Key Read",
            "GET /projects/{slug}/contributions/{id}/verdicts Key Read",
            "POST /projects/{slug}/validate Key Write",
            "GET /projects/{slug}/data Key Read",
            "POST /projects/{slug}/query Key Read",
            "GET /projects/{slug}/export Key Read",
            "GET /projects/{slug}/diff Optional Read",
            "GET /projects/{slug}/manifest Key Read",
            "GET /parts/{dataset}/{name} Public Read",
            "GET /.well-known/service-keys Public Read",
        ]
    );
}

#[test]
fn what_changes_something_needs_a_credential_and_more_than_read() {
    for operation in table().iter() {
        let spec = &operation.spec;
        if spec.effect != Effect::Read {
            let is_open = !spec.reads_credential() || spec.accepts(Credential::Anonymous);
            // A person without an account acts, or the code in the body is the credential.
            let may_be_open = ["sign_up", "resend_verification", "verify_operator", "claim_agent"].contains(&spec.name);
            assert!(is_open == may_be_open && spec.scope != Scope::Read, "{}", spec.name);
        }
    }
}

#[test]
fn every_operation_on_a_project_names_it_as_its_item() {
    for operation in table().iter() {
        let spec = &operation.spec;
        let has_project = placeholders(operation).contains(&"slug");
        assert_eq!(spec.item != Item::None, has_project, "{}", spec.name);
        // Whoever adds to a project need not own it. Only a change of the project itself is its operator's.
        assert_eq!(
            spec.item == Item::OwnProject,
            has_project && spec.method == http::Method::PATCH,
            "{}",
            spec.name
        );
    }
}

#[test]
fn every_input_refuses_unknown_members() {
    for operation in table().iter() {
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
    for operation in table().iter() {
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
            let text = if member == "id" {
                "0197b3c0-0000-7000-8000-000000000001"
            } else {
                "tide-gauges"
            };
            input[member] = text.into();
        }
        operation.input.check(&input, &[]).unwrap();
    }
}

#[test]
fn limits_of_the_configuration_are_published() {
    let mut limits = testing::limits();
    limits.records_per_contribution = 7;
    limits.wait_seconds = 3;
    limits.page_records = 11;
    limits.diff_records = 12;
    limits.query_rows = 13;
    limits.query_characters = 14;
    limits.upload_bytes = 15;
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
