use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::price::PriceInput;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct Input {
    /// The name.
    #[schemars(length(min = 2, max = 4), regex(pattern = LINE))]
    name: String,
    #[schemars(range(min = 1, max = 9))]
    limit: Option<u32>,
    #[serde(default)]
    loud: bool,
    #[schemars(inner(length(min = 1)), length(max = 2))]
    tags: Option<Vec<String>>,
    price: Option<PriceInput>,
    #[schemars(extend("format" = "uuid"))]
    id: Option<String>,
}

fn problems(input: &Value) -> Vec<(String, String)> {
    let schema = InputSchema::of::<Input>(&[]);
    let Err(error) = schema.check(input, &["size"]) else {
        return Vec::new();
    };
    let details = error.body("r")["details"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    details
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["path"]), text(&one["problem"])))
        .collect()
}

fn problem(input: &Value) -> (String, String) {
    let all = problems(input);
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

#[test]
fn an_optional_member_may_be_left_out_but_not_null() {
    assert_eq!(problems(&json!({"name": "ab"})), []);
    let (path, problem) = problem(&json!({"name": "ab", "limit": null}));
    assert_eq!((path.as_str(), problem.as_str()), ("/limit", "must be an integer"));
}

#[test]
fn null_stays_where_it_means_something() {
    for price in [json!(null), json!("0.10"), json!(0.29), json!(3)] {
        assert_eq!(problems(&json!({"name": "ab", "price": price})), [], "{price}");
    }
}

#[test]
fn every_amount_of_cents_is_a_multiple_of_a_cent() {
    let schema = InputSchema::of::<Input>(&[]);
    for cents in 1..5_000 {
        let dollars = f64::from(cents) / 100.0;
        let input = json!({"name": "ab", "price": dollars});
        assert!(schema.check(&input, &[]).is_ok(), "{dollars}");
    }
}

#[test]
fn every_problem_names_its_place_and_its_rule() {
    for (input, path, rule) in [
        (json!({}), "/name", "is required"),
        (json!({"name": "ab", "nmae": 1}), "/nmae", "is not a known field"),
        (
            json!({"name": "ab", "size": 1}),
            "/size",
            "never changes after creation",
        ),
        (json!({"name": "a"}), "/name", "must have at least 2 characters"),
        (json!({"name": "abcde"}), "/name", "must have at most 4 characters"),
        (
            json!({"name": "a\u{7}b"}),
            "/name",
            "must not contain control characters",
        ),
        (json!({"name": 5}), "/name", "must be a string"),
        (json!({"name": "ab", "limit": 0}), "/limit", "must be at least 1"),
        (json!({"name": "ab", "limit": 10}), "/limit", "must be at most 9"),
        (json!({"name": "ab", "limit": 1.5}), "/limit", "must be an integer"),
        (
            json!({"name": "ab", "tags": ["a", ""]}),
            "/tags/1",
            "must have at least 1 character",
        ),
        (
            json!({"name": "ab", "tags": ["a", "b", "c"]}),
            "/tags",
            "must have at most 2 items",
        ),
        (json!({"name": "ab", "id": "x"}), "/id", "must be a UUID"),
        (json!([]), "", "must be an object"),
    ] {
        assert_eq!(problem(&input), (path.to_owned(), rule.to_owned()), "{input}");
    }
}

#[test]
fn lengths_are_counted_in_characters() {
    assert_eq!(problems(&json!({"name": "데이터셋"})), []);
    assert_eq!(problems(&json!({"name": "👩‍💻"})), []);
}

#[test]
fn the_schema_says_nothing_that_only_rust_means() {
    let text = InputSchema::of::<Input>(&[]).document.to_string();
    for word in ["uint32", "$schema", "\"null\"]", "$ref"] {
        assert!(
            !text.replace("[\"string\",\"number\",\"null\"]", "").contains(word),
            "{word} in {text}"
        );
    }
}

#[test]
fn bounds_of_the_configuration_are_published_and_asserted() {
    let bound = SchemaBound {
        at: "/properties/limit",
        keyword: "maximum",
        value: 3,
        asserted: true,
    };
    let schema = InputSchema::of::<Input>(&[bound]);
    assert_eq!(schema.property("limit").unwrap()["maximum"], 3);
    assert!(schema.check(&json!({"name": "ab", "limit": 4}), &[]).is_err());
    assert!(schema.check(&json!({"name": "ab", "limit": 3}), &[]).is_ok());
}

#[test]
fn text_becomes_what_the_schema_asks_for_or_stays_text() {
    let integer = json!({"type": "integer"});
    for (text, value) in [
        ("7", json!(7)),
        ("-7", json!(-7)),
        ("007", json!("007")),
        ("7.0", json!("7.0")),
        ("1e3", json!("1e3")),
        ("", json!("")),
        ("-", json!("-")),
        (" 7", json!(" 7")),
        ("true", json!("true")),
    ] {
        assert_eq!(coerce(&integer, text), value, "{text:?}");
    }
    assert_eq!(coerce(&json!({"type": "number"}), "1.5"), json!(1.5));
    assert_eq!(coerce(&json!({"type": "string"}), "7"), json!("7"));
    assert_eq!(coerce(&json!({"type": "boolean"}), "true"), json!(true));
    assert_eq!(coerce(&json!({"type": "boolean"}), "yes"), json!("yes"));
}

#[test]
fn an_integer_of_a_body_may_be_written_as_a_float() {
    let integer = json!({"type": ["integer", "null"]});
    for (written, read) in [
        (json!(10.0), json!(10)),
        (json!(1e9), json!(1_000_000_000)),
        (json!(-2.0), json!(-2)),
        (json!(-0.0), json!(0)),
        (json!(1.5), json!(1.5)),
        (json!(1e300), json!(1e300)),
        (json!("1"), json!("1")),
        (json!(null), json!(null)),
    ] {
        assert_eq!(whole(&integer, written.clone()), read, "{written}");
    }
    assert_eq!(whole(&json!({"type": "number"}), json!(1.0)), json!(1.0));
}
