//! Manifests, the addresses in them, and the keys that sign them.

use proof::{Keys, VerifiedManifest};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tests::world::{contribute, records};
use tests::{Http, World};

use super::world;

async fn keys(world: &World) -> Keys {
    let answer = world.http.get("/.well-known/service-keys").await.expect(200);
    Keys::parse(&answer.bytes).unwrap()
}

async fn manifest(http: &Http, slug: &str, query: &str) -> (Vec<u8>, Value) {
    let answer = http.get(&format!("/projects/{slug}/manifest{query}")).await.expect(200);
    (answer.bytes, answer.body)
}

/// The path and query of a part's address.
fn path<'a>(world: &World, part: &'a Value) -> &'a str {
    part["url"].as_str().unwrap().strip_prefix(world.server.base()).unwrap()
}

#[tokio::test]
async fn the_parts_of_a_manifest_are_there_and_are_what_it_says() {
    let world = world().await;
    let slug = world.project().await;
    for series in ["a", "b", "c"] {
        contribute(&world.agent.http, &slug, &records(series, 40)).await;
    }
    let (_, stranger) = world.newcomer().await;
    let (bytes, body) = manifest(&stranger.http, &slug, "?version=2").await;
    let verified = VerifiedManifest::parse(&bytes, &keys(&world).await).unwrap();
    assert_eq!(
        (verified.manifest().version.0, verified.manifest().record_count),
        (2, 80)
    );
    let project = world.http.get(&format!("/projects/{slug}")).await.expect(200).body;
    let versions = project["versions"].as_array().unwrap();
    let second = versions.iter().find(|version| version["version"] == 2).unwrap();
    assert_eq!(body["root"], second["root"]);
    assert_eq!(body["dataset"], project["id"]);
    for part in body["parts"].as_array().unwrap() {
        // The address is all the credential there is.
        let file = world.http.get(path(&world, part)).await.expect(200).bytes;
        assert_eq!(part["size"], file.len());
        assert_eq!(part["sha256"], data_encoding::HEXLOWER.encode(&Sha256::digest(&file)));
        let rest = world
            .http
            .send(Method::GET, path(&world, part), &[("range", "bytes=100-")], None)
            .await
            .unwrap()
            .expect(206);
        assert_eq!(rest.bytes, file[100..]);
    }
    // Old versions keep their parts, and the latest has them all.
    let (_, latest) = manifest(&stranger.http, &slug, "").await;
    assert_eq!(latest["parts"].as_array().unwrap().len(), 3);
    for (old, new) in body["parts"]
        .as_array()
        .unwrap()
        .iter()
        .zip(latest["parts"].as_array().unwrap())
    {
        assert_eq!(
            (&old["path"], &old["sha256"], &old["root"]),
            (&new["path"], &new["sha256"], &new["root"])
        );
    }
}

#[tokio::test]
async fn an_address_is_of_one_part_and_ends() {
    let world = world().await;
    let slug = world.project().await;
    for series in ["a", "b"] {
        contribute(&world.agent.http, &slug, &records(series, 4)).await;
    }
    let (_, body) = manifest(&world.agent.http, &slug, "").await;
    let address = path(&world, &body["parts"][0]).to_owned();
    let (one, other) = (
        body["parts"][0]["path"].as_str().unwrap(),
        body["parts"][1]["path"].as_str().unwrap(),
    );
    for changed in [
        address.replace(one, other),
        address.replace("expires=1", "expires=2"),
        format!("{address}A"),
    ] {
        assert_ne!(changed, address);
        let refused = world.http.get(&changed).await.expect(403);
        assert_eq!(refused.error(), "link_invalid", "{changed}");
    }
    // A quarter of an hour later, by the service's clock.
    let world = world
        .restart_with(|options| options.with("SLUICE__CLOCK__OFFSET", "16m"))
        .await;
    assert_eq!(world.http.get(&address).await.expect(403).error(), "link_expired");
    let (_, again) = manifest(&world.agent.http, &slug, "").await;
    world.http.get(path(&world, &again["parts"][0])).await.expect(200);
}

#[tokio::test]
async fn keys_are_rotated_and_revoked_while_the_service_signs() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 4)).await;
    let before = keys(&world).await;
    let (early, _) = manifest(&world.agent.http, &slug, "").await;
    let options = world.server.options().clone();
    let run = move |arguments: &[&str]| -> Value {
        let output = options.run(&[&["keys"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let rotating = tokio::task::spawn_blocking(move || {
        let rotated: Vec<Value> = (0..3).map(|_| run(&["rotate"])).collect();
        (run, rotated)
    });
    // Not one request fails meanwhile, and what is signed holds with the keys of any moment after it.
    let mut signed = vec![early];
    while !rotating.is_finished() {
        signed.push(manifest(&world.agent.http, &slug, "").await.0);
        let now = keys(&world).await;
        now.follows(&before).unwrap();
        VerifiedManifest::parse(&signed[signed.len() - 1], &now).unwrap();
    }
    let (run, rotated) = rotating.await.unwrap();
    let after = keys(&world).await;
    assert_eq!(after.document().keys.len(), 4);
    for bytes in &signed {
        VerifiedManifest::parse(bytes, &after).unwrap();
    }
    assert_eq!(rotated[2]["current"]["keyId"], json!(after.document().signature.key_id));

    let current = rotated[2]["current"]["keyId"].as_str().unwrap();
    let (last, _) = manifest(&world.agent.http, &slug, "").await;
    let revoked = run(&["revoke", current, "--reason", "left on a train"]);
    assert_eq!(revoked["revoked"]["reason"], "left on a train");
    let now = keys(&world).await;
    now.follows(&after).unwrap();
    let refused = VerifiedManifest::parse(&last, &now).unwrap_err();
    assert!(matches!(refused, proof::Error::Revoked { .. }), "{refused}");
    let (fresh, _) = manifest(&world.agent.http, &slug, "").await;
    assert_eq!(
        VerifiedManifest::parse(&fresh, &now).unwrap().key(),
        now.document().signature.key_id
    );
    // What others signed stays good.
    VerifiedManifest::parse(&signed[0], &now).unwrap();
    let again = world
        .server
        .options()
        .run(&["keys", "revoke", current, "--reason", "again"]);
    assert!(!again.status.success());
    let unknown = world
        .server
        .options()
        .run(&["keys", "revoke", "0123456789abcdef", "--reason", "x"]);
    assert!(!unknown.status.success());
}

#[tokio::test]
async fn the_keys_outlive_a_restart() {
    let world = world().await;
    let before = keys(&world).await;
    let world = world.restart_with(|options| options).await;
    assert_eq!(keys(&world).await.document().keys, before.document().keys);
}
