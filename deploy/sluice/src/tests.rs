//! The service as a whole, in this process, spoken to over its sockets.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::assemble::{RunningService, assemble};
use crate::config::LoadedConfig;
use crate::roles::ProcessRole;
use crate::{check, cli};
use types::HumanDuration;

/// A service in a folder of its own, with these keys.
async fn start(folder: &tempfile::TempDir, keys: &[(&str, &str)]) -> RunningService {
    let mut flags = vec![
        ("data.dir", folder.path().join("data").display().to_string()),
        ("server.listen", "127.0.0.1:0".to_owned()),
        // The idle processes would run this test binary, which cannot run queries.
        ("sql.standby", "0".to_owned()),
    ];
    flags.extend(keys.iter().map(|(key, value)| (*key, (*value).to_owned())));
    assemble(&LoadedConfig::load(None, &flags).unwrap(), ProcessRole::All)
        .await
        .unwrap()
}

/// Returns the head and body of an answer; `connection` is the value of the request's header.
async fn get(address: SocketAddr, path: &str, connection: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: {connection}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_service_that_drains_says_so_and_serves_and_a_stopped_one_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &[("server.drain_notice", "50ms")]).await;
    let address = running.address();
    assert!(get(address, "/drainz", "close").await.starts_with("HTTP/1.1 200"));
    running.drain();
    // A draining service closes its connections, so these end although the client asks to keep them.
    assert!(get(address, "/drainz", "keep-alive").await.starts_with("HTTP/1.1 503"));
    assert!(get(address, "/readyz", "keep-alive").await.starts_with("HTTP/1.1 200"));
    let begun = Instant::now();
    running.stop().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(50), "the notice is kept");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn measures_are_told_on_an_address_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &[("telemetry.metrics", "127.0.0.1:0")]).await;
    let (address, metrics) = (running.address(), running.metrics().unwrap());
    get(address, "/healthz", "close").await;
    let rendered = get(metrics, "/metrics", "close").await;
    for line in [
        "sluice_requests_total{operation=\"health\",status=\"200\"} 1",
        "sluice_request_seconds_count{operation=\"health\"} 1",
        "sluice_contributions_total{state=\"merged\"} 0",
        "sluice_cache_failures_total 0",
    ] {
        assert!(
            rendered.lines().any(|found| found == line),
            "{line} is not in\n{rendered}"
        );
    }
    assert!(get(address, "/metrics", "close").await.starts_with("HTTP/1.1 404"));
    running.stop().await.unwrap();
    assert!(TcpStream::connect(metrics).await.is_err());
}

#[tokio::test]
async fn a_role_that_parts_in_a_folder_do_not_allow_leaves_the_folder_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let loaded = LoadedConfig::load(None, &[("data.dir", data.display().to_string())]).unwrap();
    for role in [ProcessRole::Api, ProcessRole::Worker] {
        let error = assemble(&loaded, role).await.unwrap_err().to_string();
        assert!(
            error.contains("Kafka (`log.backend`), PostgreSQL (`database.url`) and an S3 bucket (`objects.backend`)"),
            "{error}"
        );
    }
    assert!(!data.exists());
}

/// A rule that reads the whole ledger takes longer than a call of the service may.
#[tokio::test]
async fn the_check_waits_for_the_database_longer_than_the_service() {
    let folder = tempfile::tempdir().unwrap();
    start(&folder, &[]).await.stop().await.unwrap();
    let flags = [("data.dir", folder.path().join("data").display().to_string())];
    let mut config = LoadedConfig::load(None, &flags).unwrap().config;
    config.database.timeout = HumanDuration(Duration::ZERO);
    let open_for = HumanDuration(Duration::from_hours(1));
    let checked = check::run(&config, cli::CheckArgs { open_for, json: false })
        .await
        .unwrap();
    assert_eq!(format!("{checked:?}"), format!("{:?}", ExitCode::SUCCESS));
}
