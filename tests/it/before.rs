//! The data folders, logs, databases and configuration files of earlier builds are read by this one: what was open is
//! finished once, and what was read before is read the same.
//!
//! Invariant: a fixture is never written again, and holds at any later date.
//!
//! - `before` was written by the build before messages and uploads became packages of their own. It holds three merged
//!   contributions, one of them an upload, and a rejected one; a batch in the log that nobody judged, because the process
//!   was killed at `gate.enter`; and an upload whose parts were put and that was not completed.
//! - `market` was written by its `make.py`, which says what it holds: a folder, and a folder with a dump of `PostgreSQL`.

mod market;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use tests::server::{DEADLINE, Options, POLL, Server};

use crate::binary;

fn fixture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(file)
}

fn unpack(archive: &str, folder: &Path) {
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(fixture(archive))
        .arg("-C")
        .arg(folder)
        .status()
        .unwrap();
    assert!(unpacked.success(), "{unpacked}");
}

fn json_of(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_a_log_and_a_configuration_of_the_build_before_are_read() {
    let folder = tempfile::tempdir().unwrap();
    unpack("before/data.tar.gz", folder.path());
    let keys = json_of(&folder.path().join("keys.json"));
    let options = Options::new(binary(), folder.path().join("data")).config(fixture("before/config.toml"));

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
