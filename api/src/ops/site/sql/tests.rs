use pages::{AnswerColumnKind, TableCell};
use serde_json::json;
use serde_json::value::RawValue;
use types::Version;

use super::{cells, kind_of, shown};
use crate::ops::query::run::QueryAnswered;
use crate::state::sandbox::AnswerColumn;
use crate::testing::browser::{Browser, EMAIL, form};
use crate::testing::{Service, during};

const PATH: &str = "/projects/tides/sql";

async fn scene() -> Service {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "gauge").await;
    service.project(&key, "tides", &json!({"title": "Tides"})).await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    service
}

fn column(kind: &str) -> AnswerColumn {
    AnswerColumn {
        name: "a".to_owned(),
        kind: kind.to_owned(),
        nullable: true,
    }
}

#[test]
fn cells_have_every_digit_and_tell_null_from_a_text() {
    let row = r#"[9007199254740993,null,"null","","a\"b",{"a":"b"},"text",true,"123456789012345678901"]"#;
    let kinds = [
        "Int64",
        "Utf8",
        "Utf8",
        "Utf8",
        "Utf8",
        "Json",
        "Json",
        "Boolean",
        "Decimal128(38, 0)",
    ];
    let row = RawValue::from_string(row.to_owned()).unwrap();
    let literal = |text: &str| TableCell::Literal(text.to_owned());
    let text = |text: &str| TableCell::Text(text.to_owned());
    assert_eq!(
        cells(&row, &kinds.map(column), &[0, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap(),
        [
            literal("9007199254740993"),
            TableCell::Null,
            text("null"),
            text(""),
            text("a\"b"),
            literal(r#"{"a":"b"}"#),
            literal(r#""text""#),
            literal("true"),
            text("123456789012345678901"),
        ]
    );
}

#[test]
fn an_answer_has_the_cells_that_its_page_shows_and_no_others() {
    let of = |count: usize, text: &str| {
        // Texts, and numbers in the last of 300 columns.
        let columns = (0..300).map(|at| column(if at == 299 { "Int64" } else { "Utf8" }));
        let row = format!("[{}7]", format!("\"{text}\",").repeat(299));
        let answered = QueryAnswered {
            version: Version(1),
            root: None,
            columns: columns.collect(),
            rows: (0..count)
                .map(|_| RawValue::from_string(row.clone()).unwrap())
                .collect(),
            truncated: true,
            repetition: None,
        };
        shown(&answered).unwrap()
    };
    // A chart of few rows has its numbers, although the table has no room for them.
    let few = of(200, "x");
    assert_eq!((few.rows.len(), few.row_count, few.column_count), (200, 200, 300));
    assert!(few.rows.iter().all(|row| row.len() == 25));
    assert_eq!(few.rows[0][24], TableCell::Literal("7".to_owned()));
    assert_eq!(few.columns[24].kind, AnswerColumnKind::Number);
    // 24 texts of 120 letters in a row make 1 MiB in 365 rows.
    let many = of(1_000, &"x".repeat(500));
    assert_eq!((many.row_count, many.column_count), (1_000, 300));
    assert!((300..400).contains(&many.rows.len()), "{}", many.rows.len());
}

#[test]
fn kinds_of_columns_follow_their_types() {
    for (arrow, kind) in [
        ("Int8", AnswerColumnKind::Number),
        ("UInt64", AnswerColumnKind::Number),
        ("Float64", AnswerColumnKind::Number),
        ("Decimal128(38, 2)", AnswerColumnKind::Number),
        ("Utf8", AnswerColumnKind::Text),
        ("Timestamp(µs, \"UTC\")", AnswerColumnKind::Time),
        ("Date32", AnswerColumnKind::Time),
        ("Boolean", AnswerColumnKind::Other),
        ("Json", AnswerColumnKind::Other),
        ("Interval(MonthDayNano)", AnswerColumnKind::Other),
        ("Duration(µs)", AnswerColumnKind::Other),
        ("List(Int64)", AnswerColumnKind::Other),
    ] {
        assert_eq!(kind_of(arrow), kind, "{arrow}");
    }
}

#[tokio::test]
async fn opening_the_page_fills_the_box_and_runs_nothing() {
    let service = scene().await;
    let browser = Browser::signed_in(&service).await;
    // The sandbox would never answer this statement.
    let page = browser
        .get(&format!("{PATH}?version=1&q=hang&chart=bars&limit=7"))
        .await;
    assert_eq!(page.status, 200);
    let html = page.text();
    assert!(
        html.contains(">\nhang</textarea>") && !html.contains("<tbody>"),
        "{html}"
    );
    assert!(
        html.contains("value=\"bars\" checked") && html.contains("<option selected>7</option>"),
        "{html}"
    );
    for (query, status) in [
        ("version=2", 404),
        ("version=-1", 400),
        ("limit=0", 400),
        ("limit=1001", 400),
        ("chart=pie", 200),
    ] {
        assert_eq!(browser.get(&format!("{PATH}?{query}")).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn the_form_runs_with_the_token_and_says_what_went_wrong() {
    let service = scene().await;
    let browser = Browser::signed_in(&service).await;
    let token = browser.form_token().await;
    let ask = async |sql: &str, token: &str| {
        let fields = [("form_token", token), ("version", "1"), ("limit", "5"), ("q", sql)];
        browser.post(PATH, &form(&fields)).await
    };
    assert_eq!(ask("count", "another").await.status, 403);
    let answer = ask("count", &token).await;
    assert_eq!(answer.status, 200);
    let html = answer.text();
    assert!(
        html.contains("2 rows") && html.contains("<td class=\"n\"><bdi>5</bdi></td>"),
        "{html}"
    );
    assert!(
        html.contains("http://sluice.test/projects/tides/sql?version=1&#38;limit=5&#38;q=count"),
        "{html}"
    );
    for (sql, status, words) in [
        ("refuse", 400, "`EXPLAIN` is no SELECT"),
        ("fail", 400, "Division by zero"),
        ("time out", 408, "It took longer than"),
        ("wait", 429, "Try again"),
        ("explode", 413, "Division by zero"),
        ("be gone", 503, "Try again"),
    ] {
        let answer = ask(sql, &token).await;
        assert_eq!(answer.status, status, "{sql}");
        let html = answer.text();
        assert!(
            html.contains(words) && html.contains(&format!(">\n{sql}</textarea>")),
            "{sql}: {html}"
        );
    }
}

#[tokio::test]
async fn a_takedown_while_a_statement_runs_or_waits_for_room_leaves_no_page() {
    let service = scene().await;
    let browser = Browser::signed_in(&service).await;
    let token = browser.form_token().await;
    let running = form(&[("form_token", token.as_str()), ("version", "1"), ("q", "pause count")]);
    let ended = async {
        service.sandbox.hanging.next().await;
        service.took_down("tides").await;
        service.sandbox.going_on.notify_one();
    };
    let page = during(browser.post(PATH, &running), ended).await;
    let html = page.text();
    assert!(page.status == 404 && !html.contains("Tides"), "{html}");

    // A statement that is refused before it runs names the dataset no more.
    let service = scene().await;
    let browser = Browser::signed_in(&service).await;
    let token = browser.form_token().await;
    let operator = service.app.store.operator_by_email(EMAIL).await.unwrap().unwrap().id;
    let waiting = form(&[("form_token", token.as_str()), ("version", "1"), ("q", "refuse")]);
    let answers = &service.app.process.answers;
    let down = answers.while_awaited(operator, service.took_down("tides"));
    let page = during(browser.post(PATH, &waiting), down).await;
    let html = page.text();
    assert!(page.status == 404 && !html.contains("Tides"), "{html}");
}
