//! OAuth 2.1: apps that are known by the URL of their metadata document and prove themselves with their keys.
//!
//! Invariant: document and keys are fetched through TLS, and nothing is believed of a server that is not trusted.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tests::agents::Agents;
use tests::apps::{App, REDIRECT, Wish};
use tests::tls::Front;
use tokio::net::TcpListener;

use crate::accounts::{Site, on_each};
use crate::authority;
use crate::oauth::agree;

/// Documents of a web server by name.
type Documents = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts a web server and returns its address.
async fn serve(documents: &Documents) -> SocketAddr {
    let answer = async |State(documents): State<Documents>, Path(name): Path<String>| {
        let documents = documents.lock();
        let found = documents.iter().find(|(other, _)| *other == name);
        let (_, document) = found.ok_or(StatusCode::NOT_FOUND)?;
        Ok::<_, StatusCode>(([(CONTENT_TYPE, "application/json")], document.to_string()))
    };
    let router = Router::new()
        .route("/{name}", axum::routing::get(answer))
        .with_state(Arc::clone(documents));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    // The task ends with the runtime of the test.
    drop(tokio::spawn(async move { axum::serve(listener, router).await }));
    address
}

/// The document of an app at a URL.
fn document(url: &str, keys: (&str, Value)) -> Value {
    let mut document = json!({
        "client_id": url,
        "client_name": "Tide desk",
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "private_key_jwt",
    });
    document[keys.0] = keys.1;
    document
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_with_a_document_proves_itself_with_its_keys_through_tls() {
    let Some(agents) = Agents::installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [Some(trusted), Some(stranger)] = ["trusted", "stranger"].map(|name| authority(folder.path(), name)) else {
        return;
    };
    let documents = Documents::default();
    let address = serve(&documents).await;
    let front = Front::start(&trusted, address).await;
    let unknown = Front::start(&stranger, address).await;
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| {
            options
                .with("SSL_CERT_FILE", trusted.roots().display())
                .with("SLUICE__OUTBOUND__ALLOW_PRIVATE", true)
        })
        .await;
        let (_, session) = site.signed_in("ada@example.org").await;
        // Keys stand in the document or at a URL of their own.
        for (name, member) in [("inline.json", "jwks"), ("apart.json", "jwks_uri")] {
            let id = format!("{}/{name}", front.base());
            let given = json!({"base": site.http.base(), "client": id});
            let mut client = agents.start("oauth4webapi_keys.mjs", &given).await;
            let keys = client.hear("keys").await;
            let at = format!("{}/keys.json", front.base());
            let value = if member == "jwks" { keys.clone() } else { at.into() };
            *documents.lock() = vec![
                (name.to_owned(), document(&id, (member, value))),
                ("keys.json".to_owned(), keys),
            ];
            client.tell(&json!({"published": true})).await;
            let asked = client.hear("authorize").await;
            let callback = agree(&site, &session, asked.as_str().unwrap()).await;
            client.tell(&json!({"callback": callback})).await;
            let done = client.hear("done").await;
            assert_eq!(
                done,
                json!({
                    "unproved": "invalid_client", "stolen": "invalid_client", "replayed": "invalid_client",
                    "scope": "read write", "before": 200, "after": 401,
                }),
                "{name}"
            );
        }
        // The same documents behind a certificate that nobody vouches for lead nowhere.
        let id = format!("{}/inline.json", unknown.base());
        let app = App::known(site.http.base(), &id);
        let wish = Wish {
            resource: "/mcp",
            scopes: "read",
            agent: "new",
        };
        let refused = app.browse(&session, &App::path(&app.query(&wish)), None).await;
        assert_eq!(refused.expect(400).header("location"), "");
    })
    .await;
}
