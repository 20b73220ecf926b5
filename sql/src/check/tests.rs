mod growth;

use std::fmt::Write as _;

use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;

use super::*;

fn check(sql: &str) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(super::check(sql))
}

#[track_caller]
fn refused(sql: &str, words: &str) {
    let refusal = check(sql).expect_err(sql).to_string();
    assert!(refusal.contains(words), "{sql}\n  {refusal}");
}

#[test]
fn one_select_over_records_is_taken() {
    for sql in [
        "SELECT 1",
        "select * from records",
        "SELECT * FROM \"records\" AS r;",
        "SELECT a, count(*) FROM records GROUP BY a HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 5 OFFSET 1",
        "WITH a AS (SELECT * FROM records), b AS (SELECT * FROM a) SELECT * FROM a JOIN b USING (id)",
        "SELECT x FROM (SELECT a AS x FROM records) t WHERE x IN (SELECT b FROM records) UNION ALL SELECT 1",
        "SELECT row_number() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM records",
        "SELECT CAST(a AS DECIMAL(10,2)), a::varchar, DATE '2026-01-01', INTERVAL '1 day', current_date FROM records",
        "SELECT r.* EXCLUDE (a) FROM records r /* a comment */ -- another",
        "SELECT m.n, v FROM records CROSS JOIN (VALUES (1, 'a'), (2, 'b')) AS m(n, v)",
        "SELECT a, b, sum(c) FROM records GROUP BY ROLLUP (a, b)",
        "SELECT extract(year FROM a), a AT TIME ZONE 'UTC', substring(b FROM 1 FOR 2), trim(BOTH 'x' FROM b) FROM records",
    ] {
        check(sql).unwrap_or_else(|error| panic!("{sql}\n  {error}"));
    }
}

#[test]
fn a_refusal_says_what_is_refused_and_why() {
    refused("EXPLAIN SELECT 1", "only SELECT is allowed");
    refused("SELECT 1; SELECT 2", "more than one statement");
    refused("SELECT 1\nFROM records WHERE )", "at Line: 2, Column: 20");
    let long = format!("SELECT a\nFROM records {} {}", "b".repeat(200), "c".repeat(200));
    refused(&long, " at Line: 2, Column: 215");
    refused(
        "SELECT * FROM users",
        "`users` is refused: the only tables are `records`",
    );
    refused(
        "SELECT repeat('x', 9)",
        "`repeat()` is refused: its result can be far larger",
    );
    refused("SELECT * INTO t FROM records", "a query cannot write");
    refused("", "1 to 4000 characters");
}

#[test]
fn the_limits_hold_to_the_step() {
    let chain = |terms: usize| format!("SELECT {} FROM records", vec!["a"; terms].join("+"));
    // A chain of n operators nests n + 1 deep, below the query and its SELECT.
    check(&chain(MAX_DEPTH - 2)).unwrap();
    refused(&chain(MAX_DEPTH - 1), "nest at most 200 deep");
    let nested = |depth: usize| format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth));
    check(&nested(MAX_NESTING)).unwrap();
    refused(&nested(MAX_NESTING + 1), "brackets may nest at most 24 deep");
    let list = |entries: usize| format!("SELECT * FROM records WHERE a IN ({})", vec!["1"; entries].join(","));
    // Nine tokens stand around a list of n entries and n - 1 commas.
    check(&list(MAX_TOKENS / 2 - 4)).unwrap();
    refused(&list(MAX_TOKENS / 2 - 3), "tokens");
    let padded = |characters: usize| format!("{:<characters$}", "SELECT 1");
    check(&padded(MAX_CHARACTERS)).unwrap();
    refused(&padded(MAX_CHARACTERS + 1), "1 to 4000 characters");
    let tables = |count: usize| format!("SELECT 1 FROM {}", vec!["records"; count].join(","));
    check(&tables(MAX_TABLES)).unwrap();
    refused(&tables(MAX_TABLES + 1), "read tables at most 32 times");
}

#[test]
fn with_queries_count_as_often_as_they_are_used() {
    let doubled = |levels: usize| {
        let mut sql = "WITH t0 AS (SELECT 1 AS x FROM records)".to_owned();
        for level in 1..=levels {
            let before = level - 1;
            write!(sql, ", t{level} AS (SELECT a.x FROM t{before} a, t{before} b)").unwrap();
        }
        format!("{sql} SELECT * FROM t{levels}")
    };
    check(&doubled(5)).unwrap();
    refused(&doubled(6), "the number of tables");
}

#[test]
fn names_match_the_fields_ignoring_case_unless_quoted() {
    let contract: Contract = serde_json::from_str(
        r#"{"fields":[{"name":"deviceId","type":"string"},{"name":"Count","type":"integer"},{"name":"ok","type":"boolean"}]}"#,
    )
    .unwrap();
    let read = |sql: &str| parse(sql, Some(&contract)).unwrap().to_string();
    assert_eq!(
        read("SELECT DEVICEID, r.deviceid, OK, count(*), \"deviceid\" FROM records r"),
        "SELECT \"deviceId\", r.\"deviceId\", OK, count(*), \"deviceid\" FROM records r"
    );
}

#[test]
fn statements_are_read_as_by_the_generic_dialect() {
    let corpus = include_str!("../../tests/corpus/results.slt");
    let mut read = 0;
    for block in corpus.split("\n\n") {
        let Some((_, statement)) = block.split_once('\n') else {
            continue;
        };
        let statement = statement.split("\n----").next().unwrap_or_default();
        let generic = Parser::parse_sql(&GenericDialect {}, statement);
        let bounded = Parser::parse_sql(&BoundedDialect::new(), statement);
        read += u32::from(generic.is_ok());
        assert_eq!(format!("{generic:?}"), format!("{bounded:?}"), "{statement}");
    }
    assert!(read > 100, "{read}");
}

#[test]
fn no_text_keeps_the_parser_busy() {
    let nest = |open: &str, inside: &str, close: &str, depth: usize| {
        format!("{}{inside}{}", open.repeat(depth), close.repeat(depth))
    };
    let mut texts = Vec::new();
    for (open, inside, close) in [
        ("(", "1", ")"),
        ("(", "SELECT 1", ")"),
        ("(SELECT ", "1", ")"),
        ("(SELECT * FROM ", "records", ")"),
        ("(records JOIN ", "records", ")"),
        ("(((", "records", ") JOIN records))"),
        ("[", "1", "]"),
        ("{a:", "1", "}"),
        ("abs(", "1", ")"),
        ("CASE WHEN ", "1", " THEN 1 END"),
        ("CAST(", "1", " AS INT)"),
        ("NOT ", "true", ""),
        ("- ", "1", ""),
        ("INTERVAL ", "'1'", ""),
        ("DATE ", "'1'", ""),
        ("a < ", "b", ""),
        ("STRUCT<", "INT", ">"),
        ("STRUCT<a ", "INT", ">(1)"),
        ("ARRAY<", "INT", ">[]"),
        ("EXISTS (", "SELECT 1", ")"),
        ("a IN (", "1", ")"),
        ("a BETWEEN ", "1", " AND 2"),
        ("a -> ", "1", ""),
        ("(a, b) -> ", "1", ""),
        ("x => ", "1", ""),
        ("f(x -> ", "1", ")"),
        ("a.", "b", ""),
        ("a[", "1", "]"),
        ("a LIKE ", "b", " ESCAPE 'x'"),
        ("a, ", "b", ""),
        ("(a, ", "b", ")"),
        ("LATERAL (", "SELECT 1", ")"),
        ("TABLE(", "f(1)", ")"),
        ("UNNEST(", "1", ")"),
        ("a OVER (PARTITION BY ", "1", ")"),
        ("CUBE (", "1", ")"),
        ("EXTRACT(year FROM ", "1", ")"),
        ("POSITION(a IN ", "1", ")"),
        ("SUBSTRING(a FROM ", "1", ")"),
        ("TRIM(BOTH ", "a", " FROM b)"),
        ("CONVERT(", "a", ", INT)"),
        ("OVERLAY(a PLACING ", "b", " FROM 1)"),
        ("(WITH a AS ", "(SELECT 1)", " SELECT 1)"),
        ("SELECT 1 UNION ", "SELECT 1", ""),
        ("FROM ", "records", ""),
    ] {
        for inside in ["1 +", "", ")", ","] {
            texts.push(format!("SELECT {}", nest(open, inside, close, 24)));
        }
        for depth in [12, 24, 200, 900] {
            let text = nest(open, inside, close, depth);
            for frame in [
                format!("SELECT {text}"),
                format!("SELECT * FROM {text}"),
                format!("SELECT * FROM records WHERE {text} ORDER BY {text}"),
                format!("SELECT * FROM records JOIN {text} ON true"),
                format!("SELECT * FROM records GROUP BY {text}"),
                format!("WITH a AS ({text}) SELECT 1"),
                text.clone(),
            ] {
                texts.push(frame);
            }
        }
    }
    is_quick(texts);
}

#[test]
fn no_keyword_keeps_the_parser_busy() {
    let mut texts = Vec::new();
    // Before a bracket or an operator, around what cannot be read, and in pairs.
    let before = ["(", "[", "- ", "- (", "= (", "x (", "[1] - ("];
    for word in ALL_KEYWORDS {
        for before in before {
            texts.push(format!("SELECT {}1 +", format!("{word} {before}").repeat(24)));
        }
    }
    let special = [
        "POSITION",
        "FLOOR",
        "CAST",
        "SUBSTRING",
        "OVERLAY",
        "TRIM",
        "NOT",
        "CASE",
        "INTERVAL",
        "EXTRACT",
        "CONVERT",
    ];
    for one in special {
        for other in special {
            for before in before {
                texts.push(format!(
                    "SELECT {}1 +",
                    format!("{one} {before}{other} {before}").repeat(12)
                ));
            }
        }
    }
    is_quick(texts);
}

fn is_quick(texts: Vec<String>) {
    for text in texts {
        let start = std::time::Instant::now();
        drop(check(&text));
        let took = start.elapsed();
        assert!(took.as_millis() < 1_000, "{took:?}: {text}");
    }
}
