use std::collections::HashSet;

use super::*;
use crate::testing;

fn described() -> Value {
    crate::openapi(&testing::limits(), "http://sluice.test")
}

fn operations(document: &Value) -> Vec<(String, Value)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push((format!("{method} {path}"), operation.clone()));
        }
    }
    operations
}

#[test]
fn every_operation_of_the_table_is_described_once() {
    let document = described();
    let table = crate::operations(&testing::limits());
    let ids: HashSet<_> = operations(&document)
        .iter()
        .map(|(_, operation)| operation["operationId"].as_str().unwrap().to_owned())
        .collect();
    let programs = table.iter().filter(|operation| operation.spec.surface == Surface::Rest);
    let named = programs.map(|operation| operation.spec.name.to_owned());
    // The route for the parts of uploads exists in HTTP only.
    assert_eq!(ids, named.chain(["put_upload_part".to_owned()]).collect());
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], VERSION);
}

#[test]
fn permissions_are_described() {
    let document = described();
    for (path, security) in [
        ("/healthz/get", json!([])),
        ("/projects/get", json!([{}, {"agentKey": []}, {"operatorToken": []}])),
        ("/projects/post", json!([{"agentKey": []}, {"operatorToken": []}])),
        ("/agents/post", json!([{"operatorToken": []}])),
    ] {
        let (path, method) = path.rsplit_once('/').unwrap();
        assert_eq!(document["paths"][path][method]["security"], security, "{path}");
    }
}

#[test]
fn a_member_of_the_input_is_described_where_it_travels() {
    let document = described();
    let contribute = &document["paths"]["/projects/{slug}/contribute"]["post"];
    let places: Vec<_> = contribute["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| {
            (
                parameter["name"].as_str().unwrap(),
                parameter["in"].as_str().unwrap(),
                &parameter["required"],
            )
        })
        .collect();
    assert!(places.contains(&("slug", "path", &json!(true))), "{places:?}");
    assert!(places.contains(&("wait", "query", &json!(false))), "{places:?}");
    assert!(
        places.contains(&("Idempotency-Key", "header", &json!(false))),
        "{places:?}"
    );
    let schema = &contribute["requestBody"]["content"]["application/json"]["schema"];
    let members: HashSet<_> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(members, HashSet::from(["records", "sourceDeclaration", "onRefused"]));
    assert_eq!(schema["required"], json!(["records"]));
    assert_eq!(schema["additionalProperties"], false);
    let update = &document["paths"]["/projects/{slug}"]["patch"]["requestBody"]["content"]["application/json"];
    assert_eq!(update["schema"]["minProperties"], 1);
}

#[test]
fn every_refusal_has_the_one_shape() {
    for (name, operation) in operations(&described()) {
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{name}");
        for (status, response) in responses.iter().filter(|(status, _)| status.starts_with('4')) {
            let schema = &response["content"]["application/json"]["schema"];
            let is_oauth = operation["tags"] == json!(["oauth"]) && ["400", "401"].contains(&status.as_str());
            let is_own = is_oauth && schema["$ref"] == "#/components/schemas/OAuthError";
            assert!(
                is_own || schema["$ref"] == "#/components/schemas/Error",
                "{name} {status}"
            );
        }
        let public = operation["security"] == json!([]);
        let client_proves_itself = name.ends_with("/oauth/token") || name.ends_with("/oauth/revoke");
        assert_eq!(responses.contains_key("401"), !public || client_proves_itself, "{name}");
    }
}

#[test]
fn what_may_fail_at_any_call_is_described_everywhere() {
    for (name, operation) in operations(&described()) {
        let responses = &operation["responses"];
        let schema = "/content/application~1json/schema/$ref";
        assert!(responses["500"].pointer(schema).is_some(), "{name}");
        // A readiness failure names the dependency that is down.
        let ready = operation["operationId"] == "readiness";
        assert_eq!(responses["503"].pointer(schema).is_some(), !ready, "{name}");
        assert_eq!(responses["503"]["headers"]["Retry-After"].is_object(), !ready, "{name}");
    }
}

#[test]
fn the_nature_of_the_service_and_the_limit_of_an_upload_are_stated() {
    let document = described();
    let description = document["info"]["description"].as_str().unwrap();
    for expected in [
        "testnet preview",
        "test USDC",
        "no token",
        "points are not money",
        "comments) is data",
    ] {
        assert!(description.contains(expected), "{expected}");
    }
    let begin = &document["paths"]["/projects/{slug}/uploads"]["post"];
    let schema = &begin["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["properties"]["bytes"]["maximum"], 5_368_709_120_u64);
    assert_eq!(schema["properties"]["compression"]["enum"], json!(["none", "gzip"]));
    assert!(begin["responses"].get("413").is_some());
    assert!(document["paths"]["/projects"]["post"]["responses"].get("403").is_some());
}

#[test]
fn every_reference_leads_somewhere() {
    let document = described();
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}
