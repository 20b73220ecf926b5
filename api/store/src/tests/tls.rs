//! TLS between the store and `PostgreSQL`: trusted and untrusted certificates.
//!
//! Invariant: every certificate is made for this run. `openssl` is installed where `PostgreSQL` is.

use std::fs;
use std::path::Path;

use types::{Classify as _, Kind};

use crate::testing::{Authority, Postgres};
use crate::{Error, Options, Store};

/// Connects, and asks and changes something.
async fn used(url: &str) -> Result<(), Error> {
    let store = Store::connect(url, Options::default()).await?;
    store.ping().await?;
    store.usage_count(1, "search", 1).await?;
    store.close().await;
    Ok(())
}

/// Returns the error of a URL that must be refused.
async fn refused(url: &str) -> String {
    let error = used(url).await.expect_err(url);
    assert_eq!(error.kind(), Kind::Invalid, "{error:?}");
    error.to_string()
}

fn trusting(mode: &str, roots: &Path) -> String {
    format!("sslmode={mode}&sslrootcert={}", roots.display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_trusted_as_far_as_the_url_says() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let authority = Authority::new(folders[0].path(), "authority");
    let stranger = Authority::new(folders[1].path(), "stranger");
    let (certificate, key) = authority.certificate();
    let Some(server) = Postgres::start_with_tls(&certificate, &key) else {
        return;
    };
    let by_address = server.fresh_database();
    let by_name = by_address.replace("127.0.0.1", "localhost");

    // The server accepts only TLS, so every answer came through TLS.
    let said = refused(&format!("{by_name}?sslmode=disable")).await;
    assert!(said.contains("no encryption"), "{said}");
    used(&by_name).await.unwrap();
    used(&format!("{by_name}?sslmode=require")).await.unwrap();
    used(&format!("{by_name}?{}", trusting("verify-full", &authority.roots())))
        .await
        .unwrap();
    used(&format!("{by_address}?{}", trusting("verify-ca", &authority.roots())))
        .await
        .unwrap();

    let said = refused(&format!("{by_address}?{}", trusting("verify-full", &authority.roots()))).await;
    assert!(
        said.contains("sslmode") && said.contains("not valid for name"),
        "{said}"
    );
    for mode in ["verify-ca", "verify-full"] {
        let said = refused(&format!("{by_name}?{}", trusting(mode, &stranger.roots()))).await;
        assert!(said.contains("sslmode") && said.contains("UnknownIssuer"), "{said}");
        let said = refused(&format!("{by_name}?sslmode={mode}")).await;
        assert!(said.contains("UnknownIssuer"), "the system trusts it: {said}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_the_url_asks_for_it() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.fresh_database();
    for mode in ["require", "verify-ca", "verify-full"] {
        let said = refused(&format!("{url}?sslmode={mode}")).await;
        assert!(said.contains("does not support TLS"), "{said}");
    }
    for mode in ["disable", "prefer"] {
        used(&format!("{url}?sslmode={mode}")).await.unwrap();
    }
}

#[tokio::test]
async fn whom_a_url_trusts_is_clear_before_anybody_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty) = (folder.path().join("missing"), folder.path().join("empty"));
    fs::write(&empty, "nothing").unwrap();
    // No server listens on this address.
    let url = "postgres://sluice@127.0.0.1:1/sluice";
    let said = refused(&format!("{url}?{}", trusting("verify-full", &missing))).await;
    assert!(said.contains("missing") && said.contains("No such file"), "{said}");
    let said = refused(&format!("{url}?{}", trusting("verify-full", &empty))).await;
    assert!(said.contains("no certificate"), "{said}");
    for query in [trusting("require", &empty), format!("sslrootcert={}", empty.display())] {
        let said = refused(&format!("{url}?{query}")).await;
        assert!(said.contains("`sslmode=verify-full`"), "{said}");
    }
    let said = refused(&format!("{url}?sslmode=yes")).await;
    assert!(said.contains("yes"), "{said}");
}
