//! The dry run: what a contribution would come to, with nothing kept.

use serde_json::{Value, json};
use tests::world::{all_data, batch, contribute, records};

use super::{assert_names, world};

fn gate<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let gates = answer["tallies"].as_array().expect("tallies");
    gates
        .iter()
        .find(|gate| gate["gate"] == name)
        .unwrap_or_else(|| panic!("no gate {name}: {answer}"))
}

#[tokio::test]
async fn a_dry_run_judges_as_a_contribution_would_and_keeps_nothing() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 3)).await;
    let path = format!("/projects/{slug}/validate");
    let mut rows = records("a", 3);
    rows.extend(records("b", 4));
    let judged = world.agent.http.post(&path, &batch(&rows)).await.expect(200);
    assert_eq!(gate(&judged.body, "dedup")["dropped"], 3, "{}", judged.body);
    assert_eq!(judged.body["verdicts"].as_array().unwrap().len(), 3, "{}", judged.body);
    rows[4]["sample"] = json!("four");
    let judged = world.agent.http.post(&path, &batch(&rows)).await.expect(200);
    assert_eq!(gate(&judged.body, "contract")["refused"], 1, "{}", judged.body);
    let shown = judged.body["verdicts"].to_string();
    assert!(shown.contains("/sample"), "{shown}");
    assert_eq!(all_data(&world.agent.http, &slug, 1).await.len(), 3);
    let merged = contribute(&world.agent.http, &slug, &records("b", 4)).await;
    assert_eq!(
        (&merged.body["mergedVersion"], &merged.body["acceptedCount"]),
        (&json!(2), &json!(4))
    );
}

#[tokio::test]
async fn rows_are_conserved_by_every_gate() {
    let world = world().await;
    let slug = world.project().await;
    let mut rows = records("a", 40);
    rows.extend(records("a", 5));
    rows[7]["value"] = json!("high");
    let judged = world
        .agent
        .http
        .post(&format!("/projects/{slug}/validate"), &batch(&rows))
        .await
        .expect(200);
    for gate in judged.body["tallies"].as_array().unwrap() {
        let count = |name: &str| gate[name].as_u64().unwrap_or_else(|| panic!("{name}: {gate}"));
        let out = count("passed") + count("dropped") + count("refused") + count("held");
        assert_eq!(count("rows"), out, "{gate}");
    }
}

#[tokio::test]
async fn a_dry_run_has_the_rules_of_a_contribution() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/validate");
    assert_names(&world.agent.http.post(&path, &json!({"records": []})).await, "/records");
    assert_names(
        &world.agent.http.post(&path, &batch(&records("a", 501))).await,
        "/records",
    );
    assert_names(
        &world
            .agent
            .http
            .post(&path, &json!({"records": [{}], "colour": 1}))
            .await,
        "/colour",
    );
    world.http.post(&path, &batch(&records("a", 1))).await.expect(401);
    world
        .agent
        .http
        .post("/projects/no-such/validate", &batch(&records("a", 1)))
        .await
        .expect(404);
    let large = " ".repeat(4 * 1024 * 1024 + 1);
    world.agent.http.post_bytes(&path, large).await.expect(413);
}

#[tokio::test]
async fn the_verdicts_of_a_merged_batch_name_what_was_dropped() {
    let world = world().await;
    let slug = world.project().await;
    let mut rows = records("a", 3);
    rows.extend(records("a", 1));
    let merged = contribute(&world.agent.http, &slug, &rows).await;
    let path = format!("/projects/{slug}/contributions/{}/verdicts", merged.text("/id"));
    let lines = String::from_utf8(world.agent.http.get(&path).await.expect(200).bytes).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<_> = lines.iter().map(|line| line["verdict"].as_str().unwrap()).collect();
    assert_eq!(said, ["pass", "pass", "pass", "drop"]);
    assert_eq!(lines[3]["row"], 3);
}

#[tokio::test]
async fn a_dry_run_does_not_tell_who_has_not_paid_which_records_a_dataset_has() {
    let world = world().await;
    let slug = world.project_with(json!({"access": "paid"})).await;
    contribute(&world.agent.http, &slug, &records("secret", 5)).await;
    let path = format!("/projects/{slug}/validate");
    let guess = batch(&records("secret", 5));
    let (_, stranger) = world.newcomer().await;
    let told = stranger.http.post(&path, &guess).await.expect(200);
    assert_eq!((told.text("/comparedWith"), told.text("/decision")), ("batch", "merge"));
    let owner = world.agent.http.post(&path, &guess).await.expect(200);
    assert_eq!(
        (owner.text("/comparedWith"), owner.text("/decision")),
        ("dataset", "reject")
    );
}
