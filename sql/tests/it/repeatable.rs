//! Answers that another run gives again, and the reasons for which one may not.

use std::time::Duration;

use serde_json::json;
use sql::Unrepeatable::{Approx, Double, Library, Order};

use crate::fixture::{Fixture, rows, start};

#[expect(clippy::too_many_lines, reason = "one list of statements")]
#[tokio::test]
async fn a_statement_is_repeatable_or_says_why_not() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    for (sql, reasons) in [
        // One row.
        ("SELECT count(*), max(value), min(id) FROM records", vec![]),
        ("SELECT count(*) FROM records HAVING count(*) > 5", vec![]),
        (
            "SELECT sum(seq / 2), median(value) FROM records WHERE seq < 100",
            vec![],
        ),
        (
            "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY value) FROM records",
            vec![],
        ),
        ("SELECT 1 AS one", vec![]),
        (
            "SELECT count(*) FROM (SELECT DISTINCT device FROM records) AS d",
            vec![],
        ),
        // Every column of the answer.
        ("SELECT id FROM records ORDER BY id", vec![]),
        (
            "SELECT id, value FROM records WHERE ok ORDER BY value DESC NULLS LAST, id LIMIT 20 OFFSET 5",
            vec![],
        ),
        (
            "SELECT id AS a, lower(device) AS b FROM records ORDER BY lower(device), a",
            vec![],
        ),
        ("SELECT DISTINCT device, ok FROM records ORDER BY 2, 1", vec![]),
        (
            "SELECT id FROM records WHERE seq < 5 UNION ALL SELECT device FROM records WHERE seq < 5 ORDER BY 1",
            vec![],
        ),
        (
            "WITH met AS (SELECT id, seq FROM records WHERE ok) SELECT id, seq FROM met ORDER BY seq, id",
            vec![],
        ),
        ("SELECT device, id FROM records ORDER BY seq, id, device", vec![]),
        ("SELECT * FROM (SELECT id FROM records) AS r ORDER BY id", vec![]),
        ("SELECT now() - at AS age, at FROM records ORDER BY at", vec![Order]),
        ("SELECT id, seq FROM records ORDER BY seq", vec![Order]),
        ("SELECT id FROM records", vec![Order]),
        ("SELECT id FROM (SELECT id FROM records ORDER BY id) AS r", vec![Order]),
        ("SELECT id FROM records ORDER BY seq", vec![Order]),
        ("SELECT device, id FROM records ORDER BY seq, id", vec![Order]),
        ("SELECT seq % 2 = 0 AS even, id FROM records ORDER BY even", vec![Order]),
        // A column of the answer can be called like another one below it.
        (
            "SELECT a AS b, b AS a FROM (SELECT seq % 7 AS a, lower(id) AS b FROM records) ORDER BY b",
            vec![Order],
        ),
        (
            "SELECT count(*) AS a, max(x) FROM (SELECT lower(device) AS a, id AS x FROM records) GROUP BY a ORDER BY a",
            vec![Order],
        ),
        // Intervals of one length are shown as they are.
        (
            "SELECT CASE WHEN ok THEN INTERVAL '1 month' ELSE INTERVAL '30 days' END AS i FROM records ORDER BY i",
            vec![Order],
        ),
        (
            "SELECT i, count(*) FROM (SELECT CASE WHEN ok THEN INTERVAL '1 month' ELSE INTERVAL '30 days' END AS i
             FROM records) AS r GROUP BY i ORDER BY i",
            vec![Order],
        ),
        // Every expression of GROUP BY.
        (
            "SELECT device, count(*) AS n FROM records GROUP BY device ORDER BY device",
            vec![],
        ),
        (
            "SELECT device, count(*) AS n FROM records GROUP BY device ORDER BY n DESC, device",
            vec![],
        ),
        (
            "SELECT max(seq) FROM records GROUP BY device HAVING count(*) > 1 ORDER BY device",
            vec![],
        ),
        (
            "SELECT date_trunc('day', at) AS day, max(id) FROM records GROUP BY 1 ORDER BY 1",
            vec![],
        ),
        (
            "SELECT date_trunc('day', at) AS day, max(id) FROM records GROUP BY day ORDER BY date_trunc('day', at)",
            vec![],
        ),
        (
            "SELECT device, ok, count(*) AS n FROM records GROUP BY device, ok ORDER BY device",
            vec![Order],
        ),
        (
            "SELECT device, count(*) AS n FROM records GROUP BY device ORDER BY n",
            vec![Order],
        ),
        ("SELECT device, count(*) AS n FROM records GROUP BY device", vec![Order]),
        (
            "SELECT device, count(*) AS n FROM records GROUP BY ROLLUP (device) ORDER BY device",
            vec![Order],
        ),
        (
            "SELECT device, count(*) AS n FROM records GROUP BY ROLLUP (device) ORDER BY device, n",
            vec![],
        ),
        // What picks some rows.
        (
            "SELECT count(*) FROM (SELECT id FROM records LIMIT 5) AS r",
            vec![Order],
        ),
        (
            "SELECT count(*) FROM records WHERE id IN (SELECT id FROM records ORDER BY id LIMIT 5)",
            vec![Order],
        ),
        (
            "SELECT DISTINCT ON (device) device, id FROM records ORDER BY device, id",
            vec![Order],
        ),
        (
            "SELECT id, row_number() OVER (ORDER BY id) AS n FROM records ORDER BY id, n",
            vec![Order],
        ),
        ("SELECT first_value(id) FROM records", vec![Order]),
        (
            "SELECT string_agg(id, ',' ORDER BY id) FROM records WHERE seq < 5",
            vec![Order],
        ),
        ("SELECT array_agg(id) FROM records WHERE seq < 5", vec![Order]),
        // Sums of doubles, in batches.
        ("SELECT sum(value) FROM records", vec![Double]),
        ("SELECT sum(value / 2) FROM records", vec![Double]),
        ("SELECT sum(seq % 7 * 1.5) FROM records", vec![]),
        ("SELECT avg(value), stddev(value) FROM records", vec![Double]),
        ("SELECT corr(value, seq % 7), var_pop(value) FROM records", vec![Double]),
        (
            "SELECT count(*) FROM records WHERE value > (SELECT avg(value) FROM records)",
            vec![Double],
        ),
        (
            "SELECT device FROM records GROUP BY device HAVING sum(value) > 0 ORDER BY device",
            vec![Double],
        ),
        // Estimates, and the library of mathematics.
        ("SELECT approx_distinct(id) FROM records", vec![Approx]),
        ("SELECT approx_median(seq % 100) FROM records", vec![Approx]),
        ("SELECT id, sin(value) AS s FROM records ORDER BY id, s", vec![Library]),
        ("SELECT max(2 ^ (seq % 7)) FROM records", vec![Library]),
        ("SELECT sqrt(max(value)), round(max(value)) FROM records", vec![]),
        (
            "SELECT ln(sum(value * value)), approx_median(value) FROM records",
            vec![Double, Approx, Library],
        ),
        ("SELECT id, ln(abs(value) + 1) FROM records", vec![Order, Library]),
    ] {
        let answer = sandbox.query_at(&fixture.records, sql, 50, start()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(answer.unrepeatable, reasons, "{sql}");
    }
}

#[tokio::test]
async fn a_statement_is_run_at_the_time_that_it_is_told() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let then = start().plus(Duration::from_secs(90_061));
    let sql = "SELECT now(), current_date, count(*) FROM records WHERE at < now()";
    let answer = sandbox.query_at(&fixture.records, sql, 1, then).await.unwrap();
    assert_eq!(rows(&answer), [json!(["2026-01-02T01:01:01Z", "2026-01-02", 1_502])]);
    // Otherwise the clock tells, and nobody asks for reasons.
    let answer = sandbox.query(&fixture.records, sql, 1).await.unwrap();
    assert_eq!(rows(&answer), [json!(["2026-01-01T00:00:00Z", "2026-01-01", 0])]);
    let answer = sandbox
        .query(&fixture.records, "SELECT id FROM records", 1)
        .await
        .unwrap();
    assert_eq!(answer.unrepeatable, []);
}

/// The parts of a version are other files after a compaction, with other borders of batches.
#[tokio::test]
async fn what_is_repeatable_is_the_same_over_other_files() {
    let split = Fixture::new().await;
    let whole = Fixture::in_versions(1).await;
    assert!(split.records.parts.len() > whole.records.parts.len());
    let (one, other) = (split.sandbox(), whole.sandbox());
    for sql in [
        "SELECT device, count(*) AS n, max(value), min(id), sum(seq % 100) FROM records GROUP BY device ORDER BY device",
        "SELECT id, value FROM records WHERE value > 10 ORDER BY value, id LIMIT 300",
        "SELECT deviceId, ok, count(DISTINCT device) FROM records GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT median(value), sum(seq % 7 * 0.1), max(at), bool_or(ok) FROM records",
        "SELECT a.device, count(*) FROM records a JOIN records b ON a.seq - 1 = b.seq GROUP BY 1 ORDER BY 1",
    ] {
        let first = one.query_at(&split.records, sql, 500, start()).await.unwrap();
        let second = other.query_at(&whole.records, sql, 500, start()).await.unwrap();
        assert_eq!(first.unrepeatable, [], "{sql}");
        assert_eq!(first.columns, second.columns, "{sql}");
        assert_eq!(rows(&first), rows(&second), "{sql}");
    }
}
