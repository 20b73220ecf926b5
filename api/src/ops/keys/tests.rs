use proof::Keys;
use proof::Status::{self, Current, Retired, Revoked};
use serde_json::json;

use crate::keys;
use crate::testing::Service;

async fn document(service: &Service) -> Keys {
    let got = service.get("/.well-known/service-keys", None).await;
    assert_eq!(got.status, 200);
    Keys::parse(&got.bytes).unwrap()
}

fn states(keys: &Keys) -> Vec<Status> {
    keys.document().keys.iter().map(|key| key.status).collect()
}

#[tokio::test]
async fn the_first_key_is_made_once_and_by_itself() {
    let service = Service::start().await;
    let first = document(&service).await;
    let again = document(&service).await;
    assert_eq!(first.document().keys, again.document().keys);
    assert_eq!((first.document().sequence, states(&first)), (1, vec![Current]));
}

#[tokio::test]
async fn nothing_is_issued_before_its_key_was_made() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "mine").await;
    service.project(&key, "weather", &json!({})).await;
    service.merged(&key, "weather", &[json!({"name": "a"})]).await;
    // The process that creates the key has a clock that is ahead.
    let ahead = types::clock::ManualClock::at(service.app.clock.now().plus(std::time::Duration::from_secs(3)));
    let changed = keys::rotate(&service.app.store, &ahead).await.unwrap();
    let keys = document(&service).await;
    assert_eq!(keys.document().issued_at, changed.current.created_at);
    let got = service.get("/projects/weather/manifest", Some(&key)).await;
    let manifest = proof::VerifiedManifest::parse(&got.bytes, &keys).unwrap();
    assert_eq!(manifest.manifest().issued_at, changed.current.created_at);
}

#[tokio::test]
async fn every_change_is_seen_and_follows_what_was_seen_before() {
    let service = Service::start().await;
    let (store, clock) = (&service.app.store, &*service.app.clock);
    let mut seen = vec![document(&service).await];
    for _ in 0..3 {
        let changed = keys::rotate(store, clock).await.unwrap();
        assert!(changed.before.retired_at.unwrap() > service.app.clock.now());
        seen.push(document(&service).await);
        service.clock.advance(std::time::Duration::from_mins(1));
    }
    let second = seen[1].document().keys[1].key_id.to_string();
    keys::revoke(store, clock, &second, "lost").await.unwrap();
    seen.push(document(&service).await);
    let current = seen[4].document().keys[3].key_id.to_string();
    let changed = keys::revoke(store, clock, &current, "stolen").await.unwrap();
    assert_eq!(changed.before.key_id.to_string(), current);
    seen.push(document(&service).await);

    let last = &seen[5];
    assert_eq!(states(last), [Retired, Revoked, Retired, Revoked, Current]);
    assert_eq!(last.document().keys[3].reason.as_deref(), Some("stolen"));
    for (index, later) in seen.iter().enumerate() {
        for earlier in &seen[..=index] {
            later.follows(earlier).unwrap();
            assert!(index == 0 || earlier.follows(later).is_err() || std::ptr::eq(earlier, later));
        }
    }
    let sequences: Vec<_> = seen.iter().map(|keys| keys.document().sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5, 7]);
}

#[tokio::test]
async fn a_key_is_revoked_once_and_an_unknown_one_never() {
    let service = Service::start().await;
    let (store, clock) = (&service.app.store, &*service.app.clock);
    let first = document(&service).await.first().key_id.to_string();
    keys::revoke(store, clock, &first, "lost").await.unwrap();
    let again = keys::revoke(store, clock, &first, "lost").await.unwrap_err();
    assert!(matches!(again, keys::Error::Before { .. }), "{again}");
    let unknown = keys::revoke(store, clock, "0123456789abcdef", "lost")
        .await
        .unwrap_err();
    assert!(matches!(unknown, keys::Error::Unknown { .. }), "{unknown}");
    assert_eq!(states(&document(&service).await), [Revoked, Current]);
}

#[tokio::test]
async fn no_secret_half_is_shown() {
    let service = Service::start().await;
    keys::rotate(&service.app.store, &*service.app.clock).await.unwrap();
    let got = service.get("/.well-known/service-keys", None).await;
    let text = String::from_utf8(got.bytes).unwrap();
    for key in service.app.store.service_keys().await.unwrap() {
        let shown = format!("{key:?}");
        for secret in [
            data_encoding::BASE64.encode(&key.secret),
            data_encoding::HEXLOWER.encode(&key.secret),
            format!("{:?}", key.secret),
        ] {
            assert!(!text.contains(&secret) && !shown.contains(&secret));
        }
    }
    assert_eq!(service.get("/.well-known/service-keys?all=1", None).await.text(), text);
    assert_eq!(
        service.get("/.well-known/service-keys", Some("km_none")).await.json()["format"],
        json!("sluice-keys-1")
    );
}
