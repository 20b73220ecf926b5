//! TLS between the store and `PostgreSQL`: who is trusted, and who is not.
//!
//! Invariant: every certificate is made here, for this run; `openssl` is where `PostgreSQL` is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use types::{Classify as _, Kind};

use crate::testing::Postgres;
use crate::{Error, Options, Store};

/// A key of its own for what is made.
const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// An authority that nobody else knows, in a folder of its own.
struct Authority(TempDir);

impl Authority {
    fn new(name: &str) -> Self {
        let authority = Self(tempfile::tempdir().unwrap());
        authority.openssl(&format!(
            "req -x509 -days 2 -subj /CN={name} {KEY} -keyout ca.key -out ca.crt"
        ));
        authority
    }

    /// The file that says whom to trust.
    fn roots(&self) -> PathBuf {
        self.0.path().join("ca.crt")
    }

    /// A certificate for `localhost`, and for no address, with its key.
    fn certificate(&self) -> (String, String) {
        fs::write(self.0.path().join("names"), "subjectAltName = DNS:localhost\n").unwrap();
        self.openssl(&format!(
            "req -subj /CN=localhost {KEY} -keyout server.key -out server.csr"
        ));
        self.openssl(
            "x509 -req -in server.csr -days 2 -extfile names -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt",
        );
        let read = |name: &str| fs::read_to_string(self.0.path().join(name)).unwrap();
        (read("server.crt"), read("server.key"))
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.current_dir(self.0.path()).args(arguments.split(' '));
        let ran = command.output().expect("openssl is needed");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

/// Connects, and asks and changes something.
async fn used(url: &str) -> Result<(), Error> {
    let store = Store::connect(url, Options::default()).await?;
    store.ping().await?;
    store.usage_count(1, "search", 1).await?;
    store.close().await;
    Ok(())
}

/// What is said where the URL is refused.
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
    let (authority, stranger) = (Authority::new("authority"), Authority::new("stranger"));
    let (certificate, key) = authority.certificate();
    let Some(server) = Postgres::start_with_tls(&certificate, &key) else {
        return;
    };
    let by_address = server.fresh_database();
    let by_name = by_address.replace("127.0.0.1", "localhost");

    // It talks to nobody without TLS, so whoever gets an answer has it.
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
    // Nobody listens there.
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
