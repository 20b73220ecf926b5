use std::sync::Arc;
use std::time::Duration;

use proof::{Keys, VerifiedManifest};
use serde_json::{Value, json};
use store::{OutcomeRow, Resolution};
use types::{DatasetId, OperatorId, Version};

use crate::keys;
use crate::state::direct::PresignedUrls;
use crate::testing::Service;

async fn scene(more: &Value) -> (Service, String, String) {
    let service = Service::start().await;
    let (owner, other) = (service.operator().await, service.operator().await);
    let mine = service.agent(&owner, "mine").await;
    let theirs = service.agent(&other, "theirs").await;
    service.project(&mine, "weather", more).await;
    (service, mine, theirs)
}

async fn verified(service: &Service, bytes: &[u8]) -> VerifiedManifest {
    let keys = service.get("/.well-known/service-keys", None).await;
    VerifiedManifest::parse(bytes, &Keys::parse(&keys.bytes).unwrap()).unwrap()
}

#[tokio::test]
async fn a_manifest_names_the_parts_of_its_version_and_is_signed() {
    let (service, mine, theirs) = scene(&json!({})).await;
    let first = service
        .merged(&mine, "weather", &[json!({"name": "a"}), json!({"name": "b"})])
        .await;
    let second = service.merged(&mine, "weather", &[json!({"name": "c"})]).await;
    let latest = service.get("/projects/weather/manifest", Some(&theirs)).await;
    let latest = verified(&service, &latest.bytes).await;
    let manifest = latest.manifest();
    assert_eq!(
        (manifest.slug.as_str(), manifest.version, manifest.record_count),
        ("weather", Version(2), 3)
    );
    assert_eq!(manifest.root.to_string(), second.root);
    let roots: Vec<_> = manifest.parts.iter().map(|part| part.root.to_string()).collect();
    assert_eq!(roots, [first.root.clone(), second.root]);
    assert_eq!(manifest.parts.iter().map(|part| part.rows).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(manifest.license, "platform-standard");

    let old = service.get("/projects/weather/manifest?version=1", Some(&theirs)).await;
    let old = verified(&service, &old.bytes).await;
    assert_eq!(
        (old.manifest().root.to_string(), old.manifest().parts.len()),
        (first.root, 1)
    );
    assert_eq!(old.manifest().parts[0].sha256, manifest.parts[0].sha256);
}

#[tokio::test]
async fn the_documentation_of_fields_is_signed_beside_the_rules_of_the_table() {
    let field =
        json!({"name": "name", "type": "string", "required": true, "description": "as on the sign", "unit": "m"});
    let schema = json!({"fields": [field], "allowExtra": false});
    let (service, mine, _) = scene(&json!({"schemaDef": schema})).await;
    service.merged(&mine, "weather", &[json!({"name": "a"})]).await;
    let got = service.get("/projects/weather/manifest", Some(&mine)).await;
    assert_eq!(got.json()["schemaDef"], schema);
    verified(&service, &got.bytes).await;
    let other = got.text().replace("\"unit\":\"m\"", "\"unit\":\"ft\"");
    assert_ne!(other, got.text());
    let keys = service.get("/.well-known/service-keys", None).await;
    let refused = VerifiedManifest::parse(other.as_bytes(), &Keys::parse(&keys.bytes).unwrap()).unwrap_err();
    assert!(matches!(refused, proof::Error::Signature { .. }), "{refused}");
}

#[tokio::test]
async fn a_manifest_from_before_a_rotation_stays_good_and_one_of_a_revoked_key_does_not() {
    let (service, mine, _) = scene(&json!({})).await;
    service.merged(&mine, "weather", &[json!({"name": "a"})]).await;
    let before = service.get("/projects/weather/manifest", Some(&mine)).await;
    let (store, clock) = (&service.app.store, &*service.app.clock);
    let rotated = keys::rotate(store, clock).await.unwrap();
    service.clock.advance(Duration::from_mins(1));
    let after = service.get("/projects/weather/manifest", Some(&mine)).await;
    assert_eq!(verified(&service, &before.bytes).await.key(), rotated.before.key_id);
    assert_eq!(verified(&service, &after.bytes).await.key(), rotated.current.key_id);
    assert!(after.json()["signature"]["endorsement"]["value"].is_string());

    keys::revoke(store, clock, &rotated.before.key_id.to_string(), "lost")
        .await
        .unwrap();
    let keys = service.get("/.well-known/service-keys", None).await;
    let keys = Keys::parse(&keys.bytes).unwrap();
    let refused = VerifiedManifest::parse(&before.bytes, &keys).unwrap_err();
    assert!(matches!(refused, proof::Error::Revoked { .. }), "{refused}");
    VerifiedManifest::parse(&after.bytes, &keys).unwrap();
}

#[tokio::test]
async fn who_may_not_read_a_version_gets_no_manifest_of_it() {
    let (service, mine, theirs) = scene(&json!({"access": "paid", "price": "0.25"})).await;
    assert_eq!(service.get("/projects/weather/manifest", Some(&mine)).await.status, 404);
    service.merged(&mine, "weather", &[json!({"name": "a"})]).await;
    assert_eq!(service.get("/projects/weather/manifest", Some(&mine)).await.status, 200);
    assert_eq!(
        service.get("/projects/weather/manifest", Some(&theirs)).await.status,
        402
    );
    assert_eq!(service.get("/projects/weather/manifest", None).await.status, 401);
    assert_eq!(
        service
            .get("/projects/weather/manifest?version=2", Some(&mine))
            .await
            .status,
        404
    );
    assert_eq!(
        service
            .get("/projects/weather/manifest?version=0", Some(&mine))
            .await
            .status,
        400
    );
}

/// Covers a version that the database has before this process finds it in the table.
#[tokio::test]
async fn a_published_version_that_is_not_visible_yet_is_503_everywhere() {
    let (service, mine, _) = scene(&json!({})).await;
    let body = json!({"records": [{"name": "a"}]}).to_string();
    let got = service
        .call("POST", "/projects/weather/contribute", Some(&mine), &body)
        .await;
    let outcome = OutcomeRow {
        id: got.json()["id"].as_str().unwrap().parse().unwrap(),
        generation: 0,
        at: service.app.clock.now(),
        resolution: Resolution::Merged {
            version: Version(1),
            accepted: 1,
            record_count: 1,
            root: "ab".repeat(32),
        },
        tallies: "[]".to_owned(),
        verdicts: "[]".to_owned(),
    };
    service.app.store.outcomes_apply(vec![outcome]).await.unwrap();
    for path in [
        "manifest",
        "manifest?version=1",
        "data",
        "data?version=1",
        "export?version=1",
        "diff?to=1",
    ] {
        let got = service.get(&format!("/projects/weather/{path}"), Some(&mine)).await;
        assert_eq!(
            (got.status.as_u16(), &got.json()["error"]),
            (503, &json!("not_yet")),
            "{path}"
        );
        assert_eq!(got.headers["retry-after"], "1", "{path}");
    }
    let body = json!({"sql": "count"}).to_string();
    assert_eq!(
        service
            .call("POST", "/projects/weather/query", Some(&mine), &body)
            .await
            .status,
        503
    );
    assert_eq!(
        service
            .get("/projects/weather/manifest?version=2", Some(&mine))
            .await
            .status,
        404
    );
}

/// A store that signs addresses of parts itself.
#[derive(Debug)]
struct Elsewhere;

impl PresignedUrls for Elsewhere {
    fn address(&self, dataset: DatasetId, name: &str, lasting: Duration) -> String {
        format!("http://store.test/{dataset}/{name}?seconds={}", lasting.as_secs())
    }
}

#[tokio::test]
async fn parts_that_the_store_hands_out_are_counted_once_for_as_long_as_their_addresses_are_good() {
    let (mut service, mine, theirs) = scene(&json!({})).await;
    service.merged(&mine, "weather", &[json!({"name": "a"})]).await;
    let served = service.get("/projects/weather/manifest", Some(&theirs)).await.json();
    let url = served["parts"][0]["url"].as_str().unwrap();
    let operator: OperatorId = url.split("account=").nth(1).unwrap()[..36].parse().unwrap();
    service.app.direct = Some(Arc::new(Elsewhere));
    service.router = crate::router(service.app.clone());
    let mut expected = 0;
    let mut read = async |service: &Service, path: &str, new: &[usize]| {
        let got = service.get(path, Some(&theirs)).await;
        let manifest = verified(service, &got.bytes).await;
        let parts = &manifest.manifest().parts;
        for part in parts {
            let dataset = manifest.manifest().dataset;
            let url = format!("http://store.test/{dataset}/{}?seconds=900", part.path);
            assert_eq!(part.url.as_deref(), Some(url.as_str()));
        }
        expected += new.iter().map(|&part| parts[part].size).sum::<u64>();
        let app = &service.app;
        app.egress.store(&app.store, app.clock.now()).await.unwrap();
        assert_eq!(
            app.store.egress(operator, app.clock.now().month()).await.unwrap(),
            expected
        );
    };
    let path = "/projects/weather/manifest";
    read(&service, path, &[0]).await;
    read(&service, path, &[]).await;
    service.merged(&mine, "weather", &[json!({"name": "b"})]).await;
    read(&service, &format!("{path}?version=1"), &[]).await;
    read(&service, path, &[1]).await;
    read(&service, path, &[]).await;
    // Each part counts by itself: an address that is handed out later is valid for longer.
    service.clock.advance(Duration::from_mins(14));
    service.merged(&mine, "weather", &[json!({"name": "c"})]).await;
    read(&service, path, &[2]).await;
    // The addresses have expired, so new ones count as new transfers.
    service.clock.advance(Duration::from_mins(2));
    read(&service, path, &[0, 1]).await;
    read(&service, path, &[]).await;
    service.clock.advance(Duration::from_mins(14));
    read(&service, path, &[2]).await;
}
