//! JSON, existing contracts, and the answer as a whole.

use serde_json::json;
use tabular::infer::{InferOptions, infer};

use crate::{fields, inferred, inferred_with, notes, questions, remedies, sample};

#[test]
fn a_file_is_fitted_to_an_existing_contract() {
    let contract = serde_json::from_value(json!({"fields": [
        {"name": "at", "type": "timestamp"}, {"name": "n", "type": "integer"}, {"name": "name", "type": "string"}
    ]}));
    let options = InferOptions {
        contract: Some(contract.unwrap()),
        ..InferOptions::default()
    };
    let found = infer("At,n,NAME\n2024-05-01,1.0,7\n".as_bytes(), &options).unwrap();
    assert_eq!(
        sample(&found),
        json!([{"at": "2024-05-01T00:00:00Z", "n": 1, "name": "7"}])
    );
    assert!(
        notes(&found).contains(&"midnight") && questions(&found).is_empty(),
        "{:?}",
        found.questions
    );
    let found = infer("at,Operator\n2024-05-01T00:00:00Z,x\n".as_bytes(), &options).unwrap();
    assert_eq!(
        (questions(&found), remedies(&found, "unknown_column")),
        (vec!["unknown_column"], vec!["--ignore 'Operator'".to_owned()])
    );
    let found = infer("at\n01.05.2024\n".as_bytes(), &options).unwrap();
    assert_eq!(sample(&found), json!([{"at": "2024-05-01T00:00:00Z"}]));
    let found = infer("at\n05/01/2024\n".as_bytes(), &options).unwrap();
    assert_eq!(questions(&found), ["day_or_month"]);
    let found = infer(&b"{\"at\":\"2024-05-01\",\"n\":1.0,\"name\":\"x\"}\n"[..], &options).unwrap();
    assert_eq!(
        sample(&found),
        json!([{"at": "2024-05-01T00:00:00Z", "n": 1, "name": "x"}])
    );
}

#[test]
fn records_are_found_in_json_documents() {
    let found = inferred("{\n  \"meta\": {},\n  \"rows\": [\n    {\"a\": 1},\n    {\"a\": 2}\n  ]\n}\n");
    assert_eq!(
        (found.reading.records.as_str(), sample(&found)),
        ("/rows", json!([{"a": 1}, {"a": 2}]))
    );
    assert_eq!((fields(&found).as_str(), questions(&found)), ("a integer", vec![]));
    assert_eq!(
        inferred("{\"meta\":{},\"rows\":[{\"a\":1},{\"a\":2}]}").reading.records,
        "/rows"
    );

    let found = inferred("{\"de\":{\"cap\":\"Berlin\"},\"fr\":{\"cap\":\"Paris\"}}");
    assert_eq!(fields(&found), "key string, cap string");
    assert_eq!(
        sample(&found),
        json!([{"key": "de", "cap": "Berlin"}, {"key": "fr", "cap": "Paris"}])
    );
    let found = inferred_with(
        "{\"de\":{\"cap\":\"Berlin\"},\"fr\":{\"cap\":\"Paris\"}}",
        &[("--members", "iso")],
    );
    assert_eq!(fields(&found), "iso string, cap string");

    let found = inferred("[{\"a\":1},{\"a\":\"x\"}]");
    assert_eq!((fields(&found).as_str(), notes(&found)), ("a json", vec!["mixed"]));

    let found = inferred("{\"data\":{\"items\":[{\"a\":1},{\"a\":2}]},\"included\":[{\"b\":1}]}");
    assert_eq!(questions(&found), ["records"]);
    assert_eq!(
        remedies(&found, "records"),
        ["--records '/data/items'", "--records '/included'"]
    );
    let found = inferred_with(
        "{\"data\":{\"items\":[{\"a\":1},{\"a\":2}]},\"included\":[{\"b\":1}]}",
        &[("--records", "/included")],
    );
    assert_eq!((sample(&found), questions(&found)), (json!([{"b": 1}]), vec![]));

    assert_eq!(sample(&inferred("{\"a\":1}")), json!([{"a": 1}]));
    assert_eq!(
        sample(&inferred("{\"a\":1} {\"a\":2}\n{\"a\":3}")),
        json!([{"a": 1}, {"a": 2}, {"a": 3}])
    );
    assert_eq!(
        questions(&inferred("{\"a\":{\"0\":1,\"1\":2},\"b\":{\"0\":3,\"1\":4}}")),
        ["by_columns"]
    );
    assert_eq!(
        questions(&inferred("{\"rows\":[{\"a\":1}],\"points\":[[1,2],[3,4]]}")),
        ["arrays"]
    );
}

#[test]
fn json_keeps_its_types() {
    let text = "{\"s\":\"NA\",\"i\":1,\"f\":1.5,\"d\":\"2024-05-01\",\"b\":true,\"o\":{},\"z\":\"007\",\"x\":1}\n\
                {\"s\":\"b\",\"i\":2,\"f\":2,\"d\":\"2024-05-02\",\"b\":null,\"o\":[1],\"z\":\"1\",\"x\":\"y\"}\n";
    let found = inferred(text);
    assert_eq!(
        fields(&found),
        "s string, i integer, f number, d date, b boolean, o json, z string, x json"
    );
    assert_eq!((found.records, found.columns[4].nulls), (2, 1));
    assert_eq!(
        fields(&inferred("{\"n\":170141183460469231731}\n{\"n\":1}\n")),
        "n decimal(0)"
    );
    assert_eq!(
        sample(&inferred("{\"n\":0.123456789012345678}\n{\"n\":1}\n"))[0],
        json!({"n": "0.123456789012345678"})
    );
    let found = inferred("{\"a b\":1,\"c\":2}\n{\"a b\":3}\n");
    assert_eq!(sample(&found), json!([{"a_b": 1, "c": 2}, {"a_b": 3}]));
    let found = inferred("{\"v\":NaN}\n{\"v\":1}\n");
    assert_eq!((notes(&found), found.records), (vec!["broken_records"], 2));
    let found = inferred("{\"o\":{\"v\":1000000000000000000007}}\n{\"o\":{}}\n");
    assert_eq!(
        (notes(&found), found.notes[0].line, sample(&found)),
        (vec!["digits"], Some(1), json!([{"o": {}}]))
    );
    assert_eq!(questions(&inferred("{\"v\":1e-400}\n{\"v\":1}\n")), ["digits"]);
}

#[test]
fn words_that_a_person_calls_null_are_null_in_json() {
    let found = inferred_with("{\"v\":\"n/a\"}\n{\"v\":\"2024-05-01\"}\n", &[("--null", "n/a")]);
    assert_eq!((fields(&found).as_str(), found.columns[0].nulls), ("v date", 1));
    assert_eq!(sample(&found), json!([{}, {"v": "2024-05-01"}]));
    assert_eq!(found.reading.columns[0].nulls, ["n/a"]);
    let found = inferred("{\"v\":\"n/a\"}\n{\"v\":\"2024-05-01\"}\n");
    assert_eq!(fields(&found), "v string");
}

#[test]
fn more_columns_than_a_contract_has_are_asked_about() {
    let members: Vec<String> = (0..300).map(|number| format!("\"m{number}\":{number}")).collect();
    let record = format!("{{{}}}\n", members.join(","));
    let found = inferred(&record);
    assert_eq!(
        (questions(&found), remedies(&found, "too_many_columns")),
        (vec!["too_many_columns"], vec!["--extra".to_owned()])
    );
    let found = inferred_with(&record, &[("--extra", "")]);
    assert_eq!(
        found.contract.as_ref().map(|contract| contract.fields().len()),
        Some(256)
    );
    assert_eq!(
        (found.sample[0]["m255"].clone(), found.sample[0]["m299"].clone()),
        (json!(255), json!(299))
    );
    let names: Vec<String> = (0..300).map(|number| format!("c{number}")).collect();
    let found = inferred(format!("{}\n{}\n", names.join(","), names.join(",")));
    assert_eq!(
        (questions(&found), found.contract.is_none()),
        (vec!["too_many_columns"], true)
    );
}

#[test]
fn rows_are_numbered_where_it_is_asked_for() {
    let found = inferred_with("a\nx\nx\n", &[("--number-rows", "row")]);
    assert_eq!(sample(&found), json!([{"a": "x", "row": 1}, {"a": "x", "row": 2}]));
    let found = inferred_with("row\nx\n", &[("--number-rows", "row=5211")]);
    assert_eq!(sample(&found), json!([{"row_2": "x", "row": 5211}]));
}

#[test]
fn what_a_text_cut_off_says_is_not_complete() {
    let options = InferOptions {
        max_text_bytes: 20,
        ..InferOptions::default()
    };
    let found = infer("a,b\n1,2\n3,4\n5,6\n7,\"x\ny\"\n".as_bytes(), &options).unwrap();
    assert_eq!(
        (found.complete, found.records, fields(&found).as_str()),
        (false, 3, "a integer, b integer")
    );
    let found = infer(&b"[{\"a\":1},{\"a\":2},{\"a\":\"x\"}]"[..], &options).unwrap();
    assert_eq!(
        (found.complete, found.records, fields(&found).as_str()),
        (false, 2, "a integer")
    );
    let found = infer(&b"{\"a\":1}\n{\"a\":2}\n{\"a\":\"x\"}\n"[..], &options).unwrap();
    assert_eq!(
        (found.complete, found.records, fields(&found).as_str()),
        (false, 2, "a integer")
    );
}

#[test]
fn no_text_of_a_file_gets_into_a_command_that_could_run() {
    let hostile = "-rf,$(id),\u{202e}x,b'c\n1,x\u{1b}]0;x\u{7},2,05/06/2020\n";
    let found = inferred(hostile);
    let all = found.notes.iter().flat_map(|note| &note.remedies);
    let all: Vec<_> = all
        .chain(found.questions.iter().flat_map(|question| &question.remedies))
        .collect();
    assert!(all.iter().any(|remedy| remedy.command.is_none()), "{all:?}");
    for command in all.iter().filter_map(|remedy| remedy.command.as_deref()) {
        assert!(
            !command.contains("$(") && !command.contains("'-") && !command.contains('\u{1b}'),
            "{command}"
        );
    }
}

#[test]
fn an_answer_is_what_the_interface_says() {
    let found = inferred("Station ID;Opened\n0017;01.05.1864\n0018;n/a\n");
    let answer = serde_json::to_value(&found).unwrap();
    let members: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    for member in [
        "format",
        "complete",
        "records",
        "columns",
        "schemaDef",
        "reading",
        "sample",
        "notes",
        "questions",
    ] {
        assert!(members.contains(&member), "{member}");
    }
    assert_eq!(answer["format"], "csv");
    assert_eq!(
        answer["columns"][1],
        json!({"name": "Opened", "field": "opened", "type": "date", "parse": "%d.%m.%Y", "nulls": 1,
               "nullWords": [{"word": "n/a", "count": 1}], "examples": ["01.05.1864"], "distinct": ["01.05.1864"]})
    );
    assert_eq!(
        answer["reading"]["columns"][0],
        json!({"from": "Station ID", "to": "station_id"})
    );
    assert_eq!(answer["schemaDef"]["fields"][0]["title"], "Station ID");
}

#[test]
fn a_reading_says_again_what_it_said_of_its_file() {
    for (text, flags) in [
        (
            "Made by hand\n\nStation ID;Opened;Height\n007;05/06/2020;1,5\n008;n/a;2,25\n",
            &[("--types", "opened=date:%d/%m/%Y")][..],
        ),
        (
            "t|u\n2024-05-01 08:00:00.1234567|'a|b'\n",
            &[("--round", "t"), ("--zone", "Europe/Oslo"), ("--quote", "'")],
        ),
        (
            "{\"a\":{\"v w\":\"2024-05-01 08:00\"},\"b\":{\"v w\":\"2024-05-02 09:00\"}}",
            &[("--rename", "v w=at")],
        ),
        (
            "{\"items\":[{\"t\":1714550400}],\"more\":[{\"x\":1}]}",
            &[("--records", "/items"), ("--types", "t=timestamp:unix-seconds")],
        ),
        (
            "a,b\n1,x\n2,\"\"\nTotal,y\n",
            &[("--skip-lines", "4"), ("--empty-text", ""), ("--number-rows", "row=5")],
        ),
    ] {
        let first = inferred_with(text, flags);
        let again = InferOptions {
            reading: Some(first.reading.clone()),
            ..InferOptions::default()
        };
        let again = infer(text.as_bytes(), &again).unwrap();
        assert_eq!(questions(&again), Vec::<&str>::new(), "{text}");
        assert_eq!(
            (fields(&again), again.reading, again.sample),
            (fields(&first), first.reading, first.sample),
            "{text}"
        );
    }
}
