use outbound::testing::{Authority, Names, Reply, Server, Toward};
use outbound::{ClientOptions, Ports, Roots};

use super::*;
use crate::scheduler::tests::TIDES;

const PAUSE: Duration = Duration::from_millis(20);

/// Returns a source at `harbour.example` that redirects to `other.example`, whose rules are `rules`.
async fn redirecting(rules: &'static str) -> (Fetcher, CollectorSource, Server) {
    let authority = Authority::default();
    let server = Server::with_tls(&authority, &["harbour.example", "other.example"], move |head| {
        let is_other = head.to_ascii_lowercase().contains("host: other.example");
        match head.split(' ').nth(1).unwrap() {
            "/robots.txt" if is_other => Reply::new("200 OK", rules),
            "/robots.txt" => Reply::new("404 Not Found", ""),
            "/tides" => Reply::new("302 Found\r\nLocation: https://other.example/moved", ""),
            _ => Reply::new("200 OK", r#"[{"id":"a"}]"#),
        }
    })
    .await;
    let names = Names::default()
        .with("harbour.example", "93.184.216.34")
        .with("other.example", "93.184.216.35");
    let options = ClientOptions {
        roots: Roots::Pem(authority.pem()),
        ports: Ports::Only(vec![443]),
        ..ClientOptions::new("mailto:collectors@example.org")
    };
    let client = OutboundClient::new(options).unwrap().with_resolver(Arc::new(names));
    let client = client.with_dialer(Arc::new(Toward::new(server.address())));
    (
        Fetcher::new(client, PAUSE),
        CollectorSource::parse(TIDES, None).unwrap(),
        server,
    )
}

#[tokio::test]
async fn a_redirect_to_another_host_obeys_the_rules_of_that_host() {
    let (fetcher, source, server) = redirecting("User-agent: *\nDisallow: /moved").await;
    assert_eq!(fetcher.fetch(&source, None).await.unwrap_err().code, "robots");
    assert!(server.heads().iter().all(|head| !head.starts_with("GET /moved ")));
}

#[tokio::test]
async fn a_redirect_to_another_host_waits_for_its_turn_there() {
    let (fetcher, source, server) = redirecting("").await;
    let begun = Instant::now();
    assert!(matches!(
        fetcher.fetch(&source, None).await,
        Ok(FetchedRecords::Records(..))
    ));
    // Each host was asked for its rules and then for a page.
    assert_eq!(server.heads().len(), 4);
    assert!(begun.elapsed() >= PAUSE * 2);
}
