//! The data folder, the log, the database and the configuration file of an earlier build are read by this one.
//!
//! Invariant: the fixture was written by the build before messages and uploads became packages of their own. It is
//! never written again. It holds three merged contributions, one of them an upload, and a rejected one; a batch in the
//! log that nobody judged, because the process was killed at `gate.enter`; and an upload whose parts were put and that
//! was not completed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use tests::server::{DEADLINE, Options, POLL, Server};

use crate::binary;

fn fixture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/before").join(file)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_a_log_and_a_configuration_of_the_build_before_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(fixture("data.tar.gz"))
        .arg("-C")
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(unpacked.success(), "{unpacked}");
    let keys: Value = serde_json::from_slice(&std::fs::read(folder.path().join("keys.json")).unwrap()).unwrap();
    let options = Options::new(binary(), folder.path().join("data")).config(fixture("config.toml"));

    let server = Server::start(&options).await;
    let agent = server.http().with(keys["agentKey"].as_str().unwrap());
    let upload = keys["upload"].as_str().unwrap();
    let path = format!("/projects/gauges/uploads/{upload}/complete");
    let body = serde_json::json!({"etags": keys["etags"]});
    agent.post(&path, &body).await.expect(201);
    // The batch that the log held and the upload are merged, each once.
    let deadline = Instant::now() + DEADLINE;
    loop {
        let project = agent.get("/projects/gauges").await.expect(200);
        if project.body["recordCount"] == 100 {
            assert_eq!(project.body["latestVersion"], 5);
            break;
        }
        assert!(Instant::now() < deadline, "{project:?}");
        tokio::time::sleep(POLL).await;
    }
    assert!(server.stop().await.success());
    options.assert_consistent();
}
