use std::time::Duration;

use types::{Classify as _, Retry};

use super::*;
use crate::testing::{Authority, Names, Reply, Server, Toward};
use crate::{Ports, Roots, UrlRefusal};

const REFUSED: &str = include_str!("../../corpus/refused.tsv");
const ALLOWED: &str = include_str!("../../corpus/allowed.tsv");
const NAMES: &str = include_str!("../../corpus/names.tsv");
const GOOD: &str = "https://good.example/";

fn rows(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split_terminator('\n').map(|row| row.split_once('\t').unwrap())
}

fn names() -> Names {
    rows(NAMES).fold(Names::default(), |names, (name, addresses)| names.with(name, addresses))
}

fn limits() -> RequestLimits {
    RequestLimits {
        whole: Duration::from_secs(20),
        connect: Duration::from_secs(20),
        ..RequestLimits::of_body(1_000)
    }
}

fn short() -> RequestLimits {
    RequestLimits {
        whole: Duration::from_millis(300),
        ..limits()
    }
}

/// A client whose names are those of the corpus and whose connections all lead to one server.
struct Stage {
    server: Server,
    toward: Arc<Toward>,
    names: Arc<Names>,
    client: OutboundClient,
}

impl Stage {
    fn new(server: Server, options: ClientOptions, names: Names) -> Self {
        let toward = Arc::new(Toward::new(server.address()));
        let names = Arc::new(names);
        let client = OutboundClient::new(options).unwrap();
        let client = client
            .with_resolver(Arc::clone(&names) as _)
            .with_dialer(Arc::clone(&toward) as _);
        Self {
            server,
            toward,
            names,
            client,
        }
    }

    /// A server with TLS for `good.example` and `other.example`.
    async fn tls(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::tls_with(names().with("other.example", "93.184.215.99"), answer).await
    }

    async fn tls_with(names: Names, answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let authority = Authority::default();
        let server = Server::with_tls(&authority, &["good.example", "other.example"], answer).await;
        let mut options = ClientOptions::new("ops@example.org");
        options.roots = Roots::Pem(authority.pem());
        Self::new(server, options, names)
    }

    async fn canary(options: ClientOptions) -> Self {
        let server = Server::plain("127.0.0.1:0", |_| Reply::new("200 OK", "secret")).await;
        Self::new(server, options, names())
    }

    async fn get(&self, url: &str, limits: RequestLimits) -> Result<Bytes, Error> {
        self.client.get(&GetRequest::new(url, limits)).await?.bytes().await
    }
}

fn rule(error: &Error) -> &'static str {
    match error {
        Error::Url(UrlRefusal::Syntax) => "syntax",
        Error::Url(UrlRefusal::Scheme) => "scheme",
        Error::Url(UrlRefusal::UserInfo) => "userinfo",
        Error::Url(UrlRefusal::Spelling) => "spelling",
        Error::Url(UrlRefusal::PrivateName) => "name",
        Error::Url(UrlRefusal::PrivateAddress) => "address",
        Error::Url(UrlRefusal::Port) => "port",
        Error::NotPublic { .. } => "resolved",
        Error::Unresolved { .. } => "unresolved",
        _ => "another",
    }
}

#[tokio::test]
async fn no_url_of_the_corpus_reaches_the_canary_and_each_is_refused_by_its_rule() {
    let stage = Stage::canary(ClientOptions::new("ops@example.org")).await;
    let mut wrong = Vec::new();
    for (expected, url) in rows(REFUSED) {
        match stage.get(url, limits()).await {
            Err(error) if rule(&error) == expected => {}
            other => wrong.push(format!("{expected}\t{url}\t{other:?}")),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(rows(REFUSED).count() >= 120);
    assert_eq!(stage.toward.dialed(), []);
    assert_eq!(stage.server.accepted(), 0);
}

#[tokio::test]
async fn the_canary_sees_the_corpus_if_the_checks_are_off() {
    let mut options = ClientOptions::new("ops@example.org");
    options.allow_private = true;
    options.ports = Ports::Any;
    let stage = Stage::canary(options).await;
    let mut reached = 0;
    for (_, url) in rows(REFUSED).filter(|(rule, _)| matches!(*rule, "address" | "resolved" | "port")) {
        let before = stage.toward.dialed().len();
        drop(stage.get(url, limits()).await);
        reached += usize::from(stage.toward.dialed().len() > before);
    }
    assert!(reached >= 110, "{reached}");
    assert!(stage.server.accepted() >= 110);
}

#[tokio::test]
async fn servers_of_this_machine_are_not_reached_by_real_connections() {
    let four = Server::plain("127.0.0.1:0", |_| Reply::new("200 OK", "secret")).await;
    let port = four.address().port();
    let mut options = ClientOptions::new("ops@example.org");
    options.ports = Ports::Only(vec![443, port]);
    let resolver = Arc::new(names());
    let client = OutboundClient::new(options).unwrap().with_resolver(resolver);
    let hosts = "127.0.0.1 127.1 127.0.0.2 0 0.0.0.0 0x7f.1 2130706433 [::1] [::] [::ffff:127.0.0.1] localhost localhost. \
                 a.localhost loopback.example loopback6.example unspecified.example mapped.example mixed.example";
    for host in hosts.split(' ').filter(|host| !host.is_empty()) {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/");
            assert!(client.get(&GetRequest::new(&url, limits())).await.is_err(), "{url}");
        }
    }
    // A connection of the test itself is the first that the server sees.
    tokio::net::TcpStream::connect(four.address()).await.unwrap();
    while four.accepted() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(four.accepted(), 1);
}

#[tokio::test]
async fn public_urls_are_fetched_through_tls_with_a_plain_request() {
    let authority = Authority::default();
    let certified: Vec<&str> = rows(ALLOWED).map(|(host, _)| host.trim_matches(['[', ']'])).collect();
    let server = Server::with_tls(&authority, &certified, |_| Reply::new("200 OK", "fine")).await;
    let mut options = ClientOptions::new("https://sluice.example/contact");
    options.roots = Roots::Pem(authority.pem());
    let stage = Stage::new(server, options, names());
    for (host, url) in rows(ALLOWED) {
        assert_eq!(stage.get(url, limits()).await.unwrap(), "fine", "{url}");
        let head = stage.server.heads().pop().unwrap().to_ascii_lowercase();
        assert!(head.contains(&format!("\r\nhost: {host}\r\n")), "{head}");
        assert!(head.contains("\r\nuser-agent: sluice (+https://sluice.example/contact)\r\n"));
        assert!(head.contains("\r\naccept-encoding: identity\r\n"));
        assert!(!head.contains("cookie") && !head.contains("authorization"));
        assert!(!head.contains("fragment"));
    }
    assert_eq!(stage.server.accepted(), rows(ALLOWED).count());
}

#[tokio::test]
async fn a_redirect_into_the_corpus_reaches_only_the_server_that_redirects() {
    let targets: Vec<&str> = rows(REFUSED).map(|(_, url)| url).collect();
    let count = targets.len();
    let stage = Stage::tls(move |head| {
        let path = head.split(' ').nth(1).unwrap();
        match path.trim_start_matches("/to/").parse::<usize>() {
            Ok(at) => Reply::raw(format!("HTTP/1.1 302 Found\r\nLocation: {}\r\n\r\n", targets[at])),
            Err(_) => Reply::new("200 OK", "a path of this server"),
        }
    })
    .await;
    let follow = RequestLimits {
        redirects: 3,
        ..limits()
    };
    for at in 0..count {
        let url = format!("{GOOD}to/{at}");
        // A target without scheme is a path of the same server.
        drop(stage.get(&url, follow).await);
    }
    let good = SocketAddr::from(([93, 184, 215, 14], 443));
    assert!(stage.toward.dialed().len() >= count);
    assert!(stage.toward.dialed().iter().all(|address| *address == good));
}

#[tokio::test]
async fn redirects_are_refused_or_followed_up_to_their_limit() {
    let stage = Stage::tls(|head| match head.split(' ').nth(1).unwrap() {
        "/one" => Reply::new("301 Moved\r\nSet-Cookie: a=b\r\nLocation: /two", "x"),
        "/two" => Reply::new("307 Moved\r\nLocation: https://other.example/three", "x"),
        "/three" => Reply::new("200 OK", "here"),
        "/nowhere" => Reply::new("302 Found", "x"),
        _ => Reply::new("302 Found\r\nLocation: /again", "x"),
    })
    .await;
    let follow = |redirects| RequestLimits { redirects, ..limits() };
    let url = "https://good.example/one";
    for refused in [0, 1] {
        let error = stage.get(url, follow(refused)).await.unwrap_err();
        assert!(matches!(error, Error::Redirects { limit, .. } if limit == refused));
    }
    let mut request = GetRequest::new(url, follow(2));
    request.if_none_match = Some("\"a\"");
    let answer = stage.client.get(&request).await.unwrap();
    assert_eq!(answer.url.as_str(), "https://other.example/three");
    let heads = stage.server.heads();
    let [.., one, two, three] = &heads[..] else { panic!() };
    assert!(one.contains("if-none-match: \"a\"") && two.contains("if-none-match: \"a\""));
    assert!(!three.contains("if-none-match"), "validators are of the first server");
    assert!(!heads.concat().to_ascii_lowercase().contains("\r\ncookie"));
    let before = stage.server.accepted();
    let error = stage.get("https://good.example/loop", follow(5)).await.unwrap_err();
    assert!(matches!(error, Error::Redirects { limit: 5, .. }));
    assert_eq!(stage.server.accepted() - before, 6);
    let error = stage.get("https://good.example/nowhere", follow(5)).await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }));
}

#[tokio::test]
async fn a_name_that_is_rebound_after_its_check_changes_nothing() {
    let rebound = || {
        Names::default()
            .with("good.example", "93.184.215.14")
            .with("good.example", "127.0.0.1")
    };
    let stage = Stage::tls_with(rebound(), |_| Reply::new("200 OK", "fine")).await;
    assert_eq!(stage.get(GOOD, limits()).await.unwrap(), "fine");
    assert_eq!(stage.names.asked(), ["good.example"], "one look-up for one connection");
    assert_eq!(stage.toward.dialed(), [SocketAddr::from(([93, 184, 215, 14], 443))]);
    let error = stage.get(GOOD, limits()).await.unwrap_err();
    assert!(matches!(error, Error::NotPublic { .. }));
    assert_eq!(stage.toward.dialed().len(), 1);

    // The second look-up of a redirect is checked like the first.
    let stage = Stage::tls_with(rebound(), |_| Reply::new("302 Found\r\nLocation: /next", "")).await;
    let follow = RequestLimits {
        redirects: 2,
        ..limits()
    };
    let error = stage.get(GOOD, follow).await.unwrap_err();
    assert!(matches!(error, Error::NotPublic { .. }));
    assert_eq!(stage.toward.dialed().len(), 1);
}

#[tokio::test]
async fn bodies_and_headers_end_at_their_limits() {
    let stage = Stage::tls(|head| {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let many = "A: b\r\n".repeat(200);
        match head.split(' ').nth(1).unwrap() {
            "/exact" => Reply::new("200 OK", [b'x'; 1_000]),
            "/promised" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n").then_stall(),
            "/one-more" => Reply::raw([b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'x'; 1_001]].concat()),
            "/endless" => Reply::raw(chunked).then_repeat("5\r\nhello\r\n"),
            "/extensions" => Reply::raw(format!("{chunked}5;")).then_repeat("x"),
            "/header" => Reply::raw("HTTP/1.1 200 OK\r\nA: ").then_repeat("x"),
            "/fields" => Reply::raw(format!("HTTP/1.1 200 OK\r\n{many}\r\n")),
            "/informational" => Reply::raw("").then_repeat("HTTP/1.1 103 Early Hints\r\n\r\n"),
            "/cut" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive "),
            "/gzip" => Reply::new("200 OK\r\nContent-Encoding: gzip", "x"),
            "/identity" => Reply::new("200 OK\r\nContent-Encoding: identity", "x"),
            "/ssh" => Reply::raw("SSH-2.0-OpenSSH_9.2\r\n"),
            _ => Reply::raw(""),
        }
    })
    .await;
    let get = async |path: &str, limits| stage.get(&format!("https://good.example/{path}"), limits).await;
    assert_eq!(get("exact", limits()).await.unwrap().len(), 1_000);
    assert_eq!(get("identity", limits()).await.unwrap(), "x");
    for path in ["promised", "one-more", "endless"] {
        let error = get(path, limits()).await.unwrap_err();
        assert!(
            matches!(error, Error::TooLarge { limit: 1_000, .. }),
            "{path}: {error:?}"
        );
        assert_eq!(error.retry(), Retry::Never);
    }
    for path in ["header", "fields"] {
        let error = get(path, limits()).await.unwrap_err();
        assert!(
            matches!(error, Error::Headers { limit: 16_384, .. }),
            "{path}: {error:?}"
        );
    }
    let error = get("gzip", limits()).await.unwrap_err();
    assert!(matches!(error, Error::Compressed { .. }));
    assert!(get("extensions", limits()).await.is_err());
    assert!(get("informational", short()).await.is_err());
    for path in ["cut", "ssh", "nothing"] {
        let error = get(path, limits()).await.unwrap_err();
        assert!(
            matches!(error, Error::Unreachable { .. } | Error::Protocol { .. }),
            "{path}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_stalls_costs_the_whole_time_and_no_more() {
    let stage = Stage::tls(|head| match head.split(' ').nth(1).unwrap() {
        "/head" => Reply::raw("HTTP/1.1 200 OK\r\n").then_stall(),
        _ => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive ").then_stall(),
    })
    .await;
    for path in ["head", "body"] {
        let error = stage.get(&format!("{GOOD}{path}"), short()).await.unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{path}: {error:?}");
        assert_eq!(error.retry(), Retry::Backoff);
    }
    // A listener that nobody accepts from: TCP connects, TLS waits.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = stage
        .client
        .clone()
        .with_dialer(Arc::new(Toward::new(silent.local_addr().unwrap())));
    let mut limits = limits();
    limits.connect = Duration::from_millis(300);
    let error = client.get(&GetRequest::new(GOOD, limits)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn only_trusted_certificates_of_the_host_are_accepted() {
    let stage = Stage::tls(|_| Reply::new("200 OK", "fine")).await;
    let error = stage.get("https://two.good.example/", limits()).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error:?}");
    let mut options = ClientOptions::new("ops@example.org");
    options.roots = Roots::Pem(Authority::default().pem());
    let stranger = Stage::new(stage.server, options, names());
    let error = stranger.get(GOOD, limits()).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error:?}");
    assert_eq!(stranger.server.heads(), [""; 0]);
}

#[tokio::test]
async fn the_text_of_an_error_tells_nothing_of_the_network() {
    let stage = Stage::canary(ClientOptions::new("ops@example.org")).await;
    let private = stage.get("https://private10.example/", limits()).await.unwrap_err();
    let missing = stage.get("https://nowhere.example/", limits()).await.unwrap_err();
    assert_eq!(private.to_string(), "`private10.example` has no public address");
    assert_eq!(missing.to_string(), "`nowhere.example` has no public address");
    assert_eq!(private.kind(), missing.kind());
    let refused = stage.get("https://10.0.0.1/", limits()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the URL is refused: its host is not a public address"
    );
    let mut said = String::new();
    for (_, url) in rows(REFUSED).filter(|(rule, _)| *rule == "resolved") {
        said += &stage.get(url, limits()).await.unwrap_err().to_string();
    }
    assert!(!said.contains("10.0.0.5") && !said.contains("169.254") && !said.contains("::"));
}

#[tokio::test]
async fn validators_are_sent_and_an_unchanged_copy_is_an_answer() {
    let stage = Stage::tls(|head| {
        let has = |line: &str| head.contains(line);
        if has("if-none-match: \"v1\"\r\n") && has("if-modified-since: Sat, 21 Nov 2026 07:00:00 GMT\r\n") {
            Reply::raw("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n")
        } else {
            Reply::new("200 OK\r\nETag: \"v1\"", "text")
        }
    })
    .await;
    let mut request = GetRequest::new(GOOD, limits());
    request.accept = Some("application/json");
    let first = stage.client.get(&request).await.unwrap();
    assert_eq!(
        (first.status.as_u16(), &first.headers["etag"]),
        (200, &HeaderValue::from_static("\"v1\""))
    );
    assert!(stage.server.heads()[0].contains("accept: application/json\r\n"));
    request.if_none_match = Some("\"v1\"");
    request.if_modified_since = Some("Sat, 21 Nov 2026 07:00:00 GMT");
    let second = stage.client.get(&request).await.unwrap();
    assert_eq!(second.status.as_u16(), 304);
    assert_eq!(second.bytes().await.unwrap(), "");
    request.if_none_match = Some("\"v1\"\r\nX-Evil: 1");
    let error = stage.client.get(&request).await.unwrap_err();
    assert!(matches!(error, Error::Header("If-None-Match")));
    assert_eq!(stage.server.accepted(), 2);
}

#[tokio::test]
async fn plain_http_of_this_machine_needs_the_explicit_option() {
    let server = Server::plain("127.0.0.1:0", |_| Reply::new("200 OK", "mine")).await;
    let url = format!("http://127.0.0.1:{}/", server.address().port());
    let mut options = ClientOptions::new("ops@example.org");
    options.ports = Ports::Any;
    let strict = OutboundClient::new(options.clone()).unwrap();
    let error = strict.get(&GetRequest::new(&url, limits())).await.unwrap_err();
    assert!(matches!(error, Error::Url(UrlRefusal::Scheme)));
    options.allow_private = true;
    let open = OutboundClient::new(options).unwrap();
    let answer = open.get(&GetRequest::new(&url, limits())).await.unwrap();
    assert_eq!(answer.bytes().await.unwrap(), "mine");
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn the_next_address_is_tried_if_one_refuses_the_connection() {
    #[derive(Debug)]
    struct FirstRefuses(Toward, SocketAddr);

    #[async_trait::async_trait]
    impl Dialer for FirstRefuses {
        async fn dial(&self, address: SocketAddr) -> std::io::Result<tokio::net::TcpStream> {
            if address == self.1 {
                return Err(std::io::ErrorKind::ConnectionRefused.into());
            }
            self.0.dial(address).await
        }
    }

    let names = Names::default().with("good.example", "93.184.215.14, 93.184.215.15");
    let stage = Stage::tls_with(names, |_| Reply::new("200 OK", "fine")).await;
    let first = SocketAddr::from(([93, 184, 215, 14], 443));
    let dialer = Arc::new(FirstRefuses(Toward::new(stage.server.address()), first));
    let client = stage.client.clone().with_dialer(Arc::clone(&dialer) as _);
    let answer = client.get(&GetRequest::new(GOOD, limits())).await.unwrap();
    assert_eq!(answer.bytes().await.unwrap(), "fine");
    assert_eq!(dialer.0.dialed(), [SocketAddr::from(([93, 184, 215, 15], 443))]);
}

#[tokio::test]
async fn json_is_posted_and_a_redirect_is_not_followed() {
    let stage = Stage::tls(|head| {
        if head.starts_with("POST /moved") {
            Reply::new("307 Moved\r\nLocation: https://other.example/", "")
        } else {
            Reply::new("202 Accepted", "taken")
        }
    })
    .await;
    let answer = stage.client.post_json(GOOD, "{}".into(), limits()).await.unwrap();
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.bytes().await.unwrap(), "taken");
    let head = &stage.server.heads()[0];
    assert!(head.starts_with("POST / HTTP/1.1"), "{head}");
    assert!(
        head.to_lowercase()
            .contains("content-type: application/json\r\ncontent-length: 2"),
        "{head}"
    );
    let moved = stage
        .client
        .post_json("https://good.example/moved", "{}".into(), limits())
        .await
        .unwrap_err();
    assert!(
        matches!(moved.error, Error::Redirects { limit: 0, .. }) && !moved.is_unsent,
        "{moved:?}"
    );
    assert_eq!(stage.server.accepted(), 2);
}

#[tokio::test]
async fn a_post_that_did_not_leave_says_so() {
    let stage = Stage::tls(|_| Reply::raw("")).await;
    let cut = stage.client.post_json(GOOD, "{}".into(), limits()).await.unwrap_err();
    assert!(!cut.is_unsent, "{cut:?}");
    let private = stage
        .client
        .post_json("https://10.0.0.1/", "{}".into(), limits())
        .await
        .unwrap_err();
    assert!(private.is_unsent, "{private:?}");
    let plain = Stage::canary(ClientOptions::new("ops@example.org")).await;
    let untrusted = plain.client.post_json(GOOD, "{}".into(), limits()).await.unwrap_err();
    assert!(untrusted.is_unsent, "{untrusted:?}");
}
