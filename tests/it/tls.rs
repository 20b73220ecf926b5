//! A service and a bucket that are reached through TLS, as the client commands meet them.

use std::fs;

use s3_server::{ACCESS_KEY, BUCKET, SECRET_KEY};
use store::testing::Authority;
use tests::tls::Front;
use tests::{Answer, Options, World};

use crate::uploads::said;
use crate::uploads_bucket::left;
use crate::{authority, binary};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_pushed_and_versions_pulled_through_tls_of_nobody_but_who_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let [Some(trusted), Some(stranger)] = ["trusted", "stranger"].map(|name| authority(folder.path(), name)) else {
        return;
    };
    let objects = s3_server::Server::start(&folder.path().join("objects")).unwrap();
    let store = Front::start(&trusted, objects.address()).await;
    let world = World::start_with(binary(), |options| {
        options
            .with("SSL_CERT_FILE", trusted.roots().display())
            .with("SLUICE__OBJECTS__BACKEND", "s3")
            .with("SLUICE__OBJECTS__ENDPOINT", store.base())
            .with("SLUICE__OBJECTS__BUCKET", BUCKET)
            .with("SLUICE__OBJECTS__ACCESS_KEY", ACCESS_KEY)
            .with("SLUICE__OBJECTS__SECRET_KEY", SECRET_KEY)
    })
    .await;
    let plain = world.server.base().to_owned();
    let service = Front::start(&trusted, plain.trim_start_matches("http://").parse().unwrap()).await;
    let slug = world.project().await;
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("rows.ndjson"), "{\"station\":\"quay\",\"sample\":1}\n").unwrap();

    let known = at("known-keys.json");
    let caller = |server: &str, trusts: &Authority| -> Options {
        let options = world.server.options().clone();
        options
            .with("SSL_CERT_FILE", trusts.roots().display())
            .with("SLUICE_SERVER", server)
            .with("SLUICE_KEY", &world.agent.key)
            .with("SLUICE_KNOWN_KEYS", &known)
    };
    let push = ["push", &at("rows.ndjson"), "--project", &slug, "--state", &at("state")];
    let pulled = at("pulled");
    let pull = ["pull", &slug, "--dir", &pulled];
    let refused = |options: &Options, command: &[&str], why: &str| {
        let output = options.run(command);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(6), "{said}");
        assert!(said.contains("is not trusted") && said.contains(why), "{said}");
    };

    let by_address = service.base().replace("localhost", "127.0.0.1");
    refused(&caller(&service.base(), &stranger), &push, "UnknownIssuer");
    refused(&caller(&by_address, &trusted), &push, "not valid for name");
    // The service is believed, the bucket that it names is not.
    refused(&caller(&plain, &stranger), &push, "PUT part 1");
    let parts = left(folder.path());
    assert!(
        !parts.iter().any(|path| path.to_string_lossy().contains(".part-")),
        "{parts:?}"
    );

    let pushed = caller(&service.base(), &trusted).run(&push);
    assert!(pushed.status.success(), "{}", said(&pushed));
    let page = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data"))
        .await
        .expect(200);
    assert_eq!(page.body["items"][0]["station"], "quay");

    refused(&caller(&plain, &stranger), &pull, "UnknownIssuer");
    assert!(!folder.path().join("pulled/manifest.json").exists());
    let whole = caller(&service.base(), &trusted).run(&pull);
    assert!(whole.status.success(), "{}", said(&whole));
    let verified = caller(&service.base(), &trusted).run(&["verify", &pulled]);
    assert!(verified.status.success(), "{}", said(&verified));
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_behind_tls_is_asked_where_it_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let [Some(trusted), Some(stranger)] = ["trusted", "stranger"].map(|name| authority(folder.path(), name)) else {
        return;
    };
    let Some(cache) = api::state::limit::testing::RedisServer::start().await else {
        return;
    };
    let front = Front::start(&trusted, cache.url().trim_start_matches("redis://").parse().unwrap()).await;
    let url = front.base().replace("https://", "rediss://");
    for (trusts, status) in [(&trusted, "ok"), (&stranger, "down")] {
        let world = World::start_with(binary(), |options| {
            options
                .with("SSL_CERT_FILE", trusts.roots().display())
                .with("SLUICE__CACHE__URL", &url)
        })
        .await;
        // The first connection may end after the service listens.
        let is_known = |ready: &Answer| ready.text("/cache") == status;
        world.http.comes_to_show("/readyz", is_known).await;
    }
}
