//! Bad input: each gets the status of the interface, an error that names the field and the rule, and nothing is done.

use serde_json::{Value, json};
use tests::world::{batch, contribute, records};
use tests::{Answer, World};

use super::{assert_names, world};

/// The largest body of a contribution.
const LARGEST: usize = 4 * 1024 * 1024;

/// Nothing of the bad input is in the dataset, and the next good batch is its first version.
async fn assert_untouched(world: &World, slug: &str) {
    let data = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data"))
        .await
        .expect(200);
    assert_eq!((&data.body["version"], &data.body["total"]), (&json!(0), &json!(0)));
    let merged = contribute(&world.agent.http, slug, &records("after", 1)).await;
    assert_eq!(merged.body["mergedVersion"], 1, "{}", merged.body);
}

async fn send(world: &World, slug: &str, body: &str) -> Answer {
    world
        .agent
        .http
        .post_bytes(&format!("/projects/{slug}/contribute"), body)
        .await
}

#[tokio::test]
async fn a_body_of_the_wrong_shape_is_refused_with_the_field_and_the_rule() {
    let world = world().await;
    let slug = world.project().await;
    let good = &records("a", 1)[0];
    let bad: [(Value, &str); 12] = [
        (json!({}), "/records"),
        (json!({"records": null}), "/records"),
        (json!({"records": "all"}), "/records"),
        (json!({"records": {}}), "/records"),
        (json!({"records": []}), "/records"),
        (json!({"records": [good, 1]}), "/records/1"),
        (json!({"records": [null]}), "/records/0"),
        (json!({"records": [[good]]}), "/records/0"),
        (json!({"records": [good], "sourceDeclaration": 7}), "/sourceDeclaration"),
        (
            json!({"records": [good], "sourceDeclaration": super::text(501)}),
            "/sourceDeclaration",
        ),
        (json!({"records": [good], "colour": "red"}), "/colour"),
        (json!({"records": [good], "wait": 5}), "/wait"),
    ];
    for (body, path) in bad {
        assert_names(&send(&world, &slug, &body.to_string()).await, path);
    }
    let fits = json!({"records": [good], "sourceDeclaration": super::text(500)});
    assert_eq!(send(&world, &slug, &fits.to_string()).await.code(), 201);
}

#[tokio::test]
async fn a_batch_has_1_to_500_records() {
    let world = world().await;
    let slug = world.project().await;
    for count in [0, 501, 2_000] {
        let answer = send(&world, &slug, &batch(&records("a", count)).to_string()).await;
        assert_names(&answer, "/records");
        assert!(
            answer.body.to_string().contains(if count == 0 { '1' } else { '5' }),
            "{}",
            answer.body
        );
    }
    assert_untouched(&world, &slug).await;
    assert_eq!(
        send(&world, &slug, &batch(&records("a", 500)).to_string()).await.code(),
        201
    );
}

#[tokio::test]
async fn a_body_has_at_most_4_mebibytes() {
    let world = world().await;
    let slug = world.project().await;
    let padded = |bytes: usize| {
        let body = batch(&records("a", 1)).to_string();
        body.clone() + &" ".repeat(bytes - body.len())
    };
    for bytes in [LARGEST + 1, 2 * LARGEST, 20 * LARGEST] {
        let answer = send(&world, &slug, &padded(bytes)).await;
        assert_eq!(answer.code(), 413, "{bytes}: {}", answer.body);
        assert!(
            !answer.error().is_empty() && answer.text("/message").contains("4194304"),
            "{}",
            answer.body
        );
    }
    assert_untouched(&world, &slug).await;
    assert_eq!(send(&world, &slug, &padded(LARGEST)).await.code(), 201);
    let huge = json!({"name": super::text(LARGEST)});
    assert_eq!(world.owner.post("/agents", &huge).await.code(), 413);
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let world = world().await;
    let slug = world.project().await;
    for body in [
        "",
        " ",
        "{",
        "null",
        "[]",
        "\"records\"",
        "records=1",
        "{\"records\":[{}]",
        "{\"records\":[{}]} {}",
        "{\"records\":[{},]}",
        "{'records':[]}",
        "\u{feff}{\"records\":[{}]}",
        "{\"records\":[{\"station\":\"a\nb\",\"sample\":1}]}",
        "{\"records\":[{\"station\":\"a\",\"sample\":01}]}",
        "{\"records\":[{\"station\":\"a\",\"sample\":NaN}]}",
        "{\"records\":[{\"station\":\"a\",\"sample\":1}], // \n\"sourceDeclaration\":\"x\"}",
    ] {
        let answer = send(&world, &slug, body).await;
        assert_eq!(answer.code(), 400, "{body}: {}", answer.body);
        assert!(!answer.text("/message").is_empty(), "{body}");
    }
    let not_utf8 = b"{\"records\":[{\"station\":\"\xff\xfe\",\"sample\":1}]}".to_vec();
    let path = format!("/projects/{slug}/contribute");
    world.agent.http.post_bytes(&path, not_utf8).await.expect(400);
    assert_untouched(&world, &slug).await;
}

#[tokio::test]
async fn json_that_readers_disagree_about_is_refused_where_it_stands() {
    let world = world().await;
    let slug = world.project().await;
    for (record, path) in [
        (r#"{"station":"a","station":"b","sample":1}"#, "/records/0/station"),
        (
            r#"{"station":"a","sample":1,"more":{"x":1,"x":1}}"#,
            "/records/0/more/x",
        ),
        (r#"{"station":"a\u0000b","sample":1}"#, "/records/0/station"),
        (r#"{"station":"\ud800","sample":1}"#, "/records/0/station"),
        (r#"{"station":"\udc00\ud800","sample":1}"#, "/records/0/station"),
        (r#"{"station":"a","sample":1e400}"#, "/records/0/sample"),
        (r#"{"station":"a","sample":1,"value":-1e999}"#, "/records/0/value"),
    ] {
        let answer = send(&world, &slug, &format!(r#"{{"records":[{record}]}}"#)).await;
        assert_names(&answer, path);
    }
    for body in [
        r#"{"records":[{"station":"a","sample":1}],"records":[{"station":"b","sample":1}]}"#,
        r#"{"records":[{"station":"a","sample":1,"\u0000":1}]}"#,
    ] {
        assert_eq!(send(&world, &slug, body).await.code(), 400, "{body}");
    }
    assert_untouched(&world, &slug).await;
}

#[tokio::test]
async fn deep_nesting_is_refused_and_the_service_lives_on() {
    let world = world().await;
    let slug = world.project().await;
    for depth in [128, 10_000, 1_000_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let body = format!(r#"{{"records":[{{"station":"a","sample":1,"more":{open}{close}}}]}}"#);
        let answer = send(&world, &slug, &body).await;
        assert_eq!(answer.code(), 400, "{depth}: {}", answer.body);
        let objects = format!(r#"{{"records":{}1{}}}"#, r#"{"a":"#.repeat(depth), "}".repeat(depth));
        if objects.len() <= LARGEST {
            assert_eq!(send(&world, &slug, &objects).await.code(), 400, "{depth}");
        }
    }
    let open = "[".repeat(100);
    let fits = format!(
        r#"{{"records":[{{"station":"a","sample":1,"more":{open}{}}}]}}"#,
        "]".repeat(100)
    );
    assert_eq!(send(&world, &slug, &fits).await.code(), 201);
    world.http.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn numbers_that_a_type_cannot_hold_reject_their_batch() {
    let world = world().await;
    let slug = world.project().await;
    for (member, number) in [
        ("sample", "9223372036854775808"),
        ("sample", "1e300"),
        ("sample", "0.5"),
        ("value", "9007199254740993"),
    ] {
        let record = if member == "sample" {
            format!(r#"{{"station":"a","sample":{number}}}"#)
        } else {
            format!(r#"{{"station":"a","sample":1,"{member}":{number}}}"#)
        };
        let answer = send(&world, &slug, &format!(r#"{{"records":[{record}]}}"#)).await;
        assert_eq!(answer.code(), 201, "{number}: {}", answer.body);
        let outcome = tests::world::decided(&world.agent.http, &slug, answer.text("/id")).await;
        assert_eq!(outcome.text("/status"), "rejected", "{number}: {}", outcome.body);
    }
    // What a double would round is refused before it is a contribution.
    for number in ["-9223372036854775809", "123456789012345678901234567890"] {
        let body = format!(r#"{{"records":[{{"station":"a","sample":{number}}}]}}"#);
        let answer = send(&world, &slug, &body).await;
        assert_eq!(answer.code(), 400, "{number}: {}", answer.body);
        assert_eq!(answer.text("/error"), "digits", "{number}: {}", answer.body);
    }
    assert_untouched(&world, &slug).await;
}

#[tokio::test]
async fn queries_and_paths_have_their_rules() {
    let world = world().await;
    let slug = world.project().await;
    let body = batch(&records("a", 1));
    for wait in ["-1", "21", "1.5", "soon", "", "1e1", "99999999999999999999"] {
        let answer = world
            .agent
            .http
            .post(&format!("/projects/{slug}/contribute?wait={wait}"), &body)
            .await;
        assert_names(&answer, "/wait");
    }
    for (query, path) in [
        ("limit=0", "/limit"),
        ("limit=1001", "/limit"),
        ("limit=x", "/limit"),
        ("offset=-1", "/offset"),
        ("offset=1.0", "/offset"),
        ("version=0", "/version"),
        ("version=-1", "/version"),
        ("version=latest", "/version"),
        ("limit=5&limit=6", "/limit"),
        ("colour=red", "/colour"),
    ] {
        assert_names(
            &world.agent.http.get(&format!("/projects/{slug}/data?{query}")).await,
            path,
        );
    }
    for slug in [
        "ab",
        "UPPER",
        "a_b",
        "-ab",
        "a%20b",
        "%F0%9F%8C%8D",
        "..",
        "%2e%2e",
        &super::text(61),
    ] {
        let answer = world
            .agent
            .http
            .post(&format!("/projects/{slug}/contribute"), &body)
            .await;
        assert!(
            matches!(answer.code(), 400 | 404 | 405),
            "{slug}: {} {}",
            answer.code(),
            answer.body
        );
        assert!(!answer.error().is_empty(), "{slug}");
    }
    assert_untouched(&world, &slug).await;
}

#[tokio::test]
async fn a_member_has_one_place() {
    let world = world().await;
    let slug = world.project().await;
    let mut body = batch(&records("a", 1));
    body["slug"] = json!("another");
    assert_names(&send(&world, &slug, &body.to_string()).await, "/slug");
    let path = format!("/projects/{slug}/contribute?sourceDeclaration=x");
    assert_eq!(world.agent.http.post(&path, &batch(&records("a", 1))).await.code(), 400);
    assert_untouched(&world, &slug).await;
}

#[tokio::test]
async fn a_compressed_body_is_refused() {
    let world = world().await;
    let slug = world.project().await;
    let headers = [("content-encoding", "gzip")];
    let path = format!("/projects/{slug}/contribute");
    let body = Some(batch(&records("a", 1)).to_string().into_bytes());
    let answer = world
        .agent
        .http
        .send(reqwest::Method::POST, &path, &headers, body)
        .await
        .unwrap();
    assert_eq!(answer.code(), 400, "{}", answer.body);
}

#[tokio::test]
async fn millions_of_wrong_records_are_refused_in_little_memory() {
    let world = world().await;
    let slug = world.project().await;
    let before = world.server.peak_mib();
    let body = format!("{{\"records\": [{}1]}}", "1,".repeat(LARGEST / 2 - 20));
    let answer = send(&world, &slug, &body).await;
    assert_names(&answer, "/records");
    let grown = world.server.peak_mib() - before;
    assert!(grown < 400, "{grown} MiB more");
    assert_untouched(&world, &slug).await;
}
