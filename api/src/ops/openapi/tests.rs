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

/// Returns a schema, or the one that it refers to.
fn followed<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    let reference = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
    reference.map_or(schema, |at| document.pointer(at).unwrap())
}

/// Returns a schema with all that it refers to in place, and without what is for people: descriptions, and what is meant
/// where a member is absent.
fn whole(document: &Value, schema: &Value) -> Value {
    match followed(document, schema) {
        Value::Object(members) => {
            let members = members
                .iter()
                .filter(|(name, value)| !["description", "default"].contains(&name.as_str()) || value.is_object());
            let members = members.map(|(name, value)| (name.clone(), whole(document, value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(|item| whole(document, item)).collect(),
        other => other.clone(),
    }
}

/// Calls a function with the place and the text of every schema of the document.
fn each_schema(document: &Value, see: &mut dyn FnMut(&str, &Value)) {
    fn walk(at: &str, value: &Value, is_schema: bool, see: &mut dyn FnMut(&str, &Value)) {
        if is_schema {
            see(at, value);
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let of_many = is_schema && ["anyOf", "oneOf", "allOf"].contains(&name.as_str());
                    let one = ["items", "schema", "not"].contains(&name.as_str());
                    let at = format!("{at}/{name}");
                    match (name.as_str(), member) {
                        ("enum" | "default" | "example" | "required" | "const", _) if is_schema => {}
                        ("properties" | "schemas", Value::Object(schemas)) => {
                            for (name, schema) in schemas {
                                walk(&format!("{at}/{name}"), schema, true, see);
                            }
                        }
                        (_, Value::Array(ways)) if of_many => {
                            for way in ways {
                                walk(&at, way, true, see);
                            }
                        }
                        ("additionalProperties", Value::Object(_)) => walk(&at, member, true, see),
                        ("additionalProperties" | "example", _) => {}
                        _ => walk(&at, member, one, see),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    walk(at, item, false, see);
                }
            }
            _ => {}
        }
    }
    walk("", document, false, see);
}

#[test]
fn generators_of_clients_can_read_every_schema() {
    let document = described();
    let mut count = 0;
    each_schema(&document, &mut |at, schema| {
        count += 1;
        let members = schema.as_object().unwrap_or_else(|| panic!("{at}: {schema}"));
        assert!(
            !schema["type"].is_array() && !members.contains_key("const"),
            "{at}: {schema}"
        );
        let is_choice_of_words = schema["oneOf"]
            .as_array()
            .is_some_and(|ways| ways.iter().all(|way| way["enum"].is_array()));
        assert!(!is_choice_of_words, "{at}: {schema}");
        let is_wide = schema["type"] == "integer" && schema["maximum"].as_i64().is_none_or(|most| most > 2_147_483_647);
        assert!(!is_wide || schema["format"] == "int64", "{at}: {schema}");
    });
    assert!(count > 1_000, "{count}");
    for (name, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let is_list = parameter["schema"]["type"] == "array";
            assert!(parameter["in"] != "header" || !is_list, "{name} {parameter}");
        }
        let bodies = [&operation["requestBody"]]
            .into_iter()
            .chain(operation["responses"].as_object().unwrap().values());
        for content in bodies
            .filter_map(|body| body["content"].as_object())
            .flat_map(Map::values)
        {
            assert!(content["schema"].is_object(), "{name} {content}");
        }
    }
}

#[test]
fn what_is_referred_to_says_what_is_enforced_and_serialized() {
    let document = described();
    let nowhere = json!({});
    for operation in crate::operations(&testing::limits()).iter() {
        let spec = &operation.spec;
        if spec.surface == ApiKind::Page {
            continue;
        }
        let plainly = |schema: &Value| whole(&nowhere, &types::plain(schema, &mut |_| json!({})));
        let described = &document["paths"][spec.path][spec.method.as_str().to_ascii_lowercase()];
        let (status, _) = spec.success[0];
        let schema = &described["responses"][status.to_string()]["content"][operation.content_type]["schema"];
        assert_eq!(whole(&document, schema), plainly(&operation.output), "{}", spec.name);
        for (member, schema) in operation.input.properties() {
            let mut parameters = described["parameters"].as_array().into_iter().flatten();
            let name = match spec.location_of(member) {
                ParamLocation::Body => {
                    let body = &described["requestBody"]["content"][spec.takes[0]]["schema"];
                    let found = &followed(&document, body)["properties"][member];
                    assert_eq!(whole(&document, found), plainly(schema), "{} {member}", spec.name);
                    continue;
                }
                ParamLocation::Header(_) => continue,
                ParamLocation::Path | ParamLocation::Query => member,
            };
            let found = parameters.find(|parameter| parameter["name"] == **name).unwrap();
            assert_eq!(
                whole(&document, &found["schema"]),
                plainly(schema),
                "{} {member}",
                spec.name
            );
        }
    }
}

/// Each line of `versions.txt` is a version and the hash of its description. A change of the description is a new line, and
/// the page of changes says what a client can see of it.
#[test]
fn a_description_that_changes_has_another_version_and_a_word_in_the_changes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops/openapi/versions.txt");
    let lines = std::fs::read_to_string(path).unwrap();
    let lines: Vec<_> = lines.lines().collect();
    let hash = blake3::hash(described().to_string().as_bytes()).to_hex();
    let line = format!("{VERSION} {}", &hash[..16]);
    assert_eq!(
        lines.last(),
        Some(&line.as_str()),
        "a new version of the interface, and its line"
    );
    let versions: HashSet<_> = lines.iter().map(|line| line.split(' ').next()).collect();
    assert_eq!(versions.len(), lines.len(), "each version once");
    let changes = include_str!("../../texts/changelog.md");
    let newest = changes.lines().find_map(|line| line.strip_prefix("## "));
    assert_eq!(newest, Some(VERSION));
}

#[test]
fn types_have_names_of_letters_and_what_is_shared_is_there_once() {
    let document = described();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        let is_name = name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.chars().all(|letter| letter.is_ascii_alphabetic());
        assert!(is_name && !name.ends_with("Other"), "{name}");
        assert_ne!(*schema, Value::Null, "{name}");
    }
    let project = &document["paths"]["/projects/{slug}"];
    let of =
        |method: &str, status: &str| &project[method]["responses"][status]["content"]["application/json"]["schema"];
    assert!(of("patch", "200")["$ref"].is_string(), "{}", of("patch", "200"));
    let size = document.to_string().len();
    assert!(size < 560_000, "{size} bytes");
}

#[test]
fn every_operation_of_the_table_is_described_once() {
    let document = described();
    let table = crate::operations(&testing::limits());
    let ids: HashSet<_> = operations(&document)
        .iter()
        .map(|(_, operation)| operation["operationId"].as_str().unwrap().to_owned())
        .collect();
    let programs = table.iter().filter(|operation| operation.spec.surface == ApiKind::Rest);
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
    let schema = followed(
        &document,
        &contribute["requestBody"]["content"]["application/json"]["schema"],
    );
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
    assert_eq!(followed(&document, &update["schema"])["minProperties"], 1);
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
        let is_error = responses["503"]
            .pointer(schema)
            .is_some_and(|to| to == "#/components/schemas/Error");
        assert_eq!(is_error, !ready, "{name}");
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
    let schema = followed(
        &document,
        &begin["requestBody"]["content"]["application/json"]["schema"],
    );
    assert_eq!(schema["properties"]["bytes"]["maximum"], 5_368_709_120_u64);
    let compression = followed(&document, &schema["properties"]["compression"]);
    assert_eq!(compression["enum"], json!(["none", "gzip"]));
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
