//! An app that connects to the service by OAuth 2.1, and the browser of the person who agrees to it.
//!
//! Invariant: every step is a request of its own, so that a test can repeat, swap or leave out any of them.

use std::path::Path;

use data_encoding::BASE64URL_NOPAD;
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode, Url};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::letters::letter_to;
use crate::{Answer, Http};

/// Verifier of every request of a test. Nothing here depends on a secret one.
pub const VERIFIER: &str = "a-verifier-that-has-more-than-43-characters-in-all";
/// Address that codes are sent to. Nobody listens there: the test reads the redirect.
pub const REDIRECT: &str = "http://127.0.0.1:4711/callback";
/// Media type of forms.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// Things that an app asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'w> {
    /// Path of the endpoint.
    pub resource: &'w str,
    /// Scopes, with spaces between them.
    pub scopes: &'w str,
    /// Id of the agent that the person chooses, or `new`.
    pub agent: &'w str,
}

/// A registered app.
#[derive(Clone, Debug)]
pub struct App {
    client: reqwest::Client,
    base: String,
    /// Identifier of the client.
    pub id: String,
}

impl App {
    /// Registers an app at the service at `base`.
    pub async fn register(base: &str, name: &str) -> Self {
        let http = Http::new(base);
        let body = json!({"client_name": name, "redirect_uris": [REDIRECT]});
        let registered = http.post("/oauth/register", &body).await.expect(201);
        Self::known(base, registered.text("/client_id"))
    }

    /// An app that the service knows by this id.
    pub fn known(base: &str, id: &str) -> Self {
        Self {
            client: s3_server::caller().redirect(Policy::none()).build().unwrap(),
            base: base.to_owned(),
            id: id.to_owned(),
        }
    }

    /// Query of an authorization request.
    pub fn query(&self, wish: &Wish<'_>) -> Vec<(&'static str, String)> {
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(VERIFIER));
        vec![
            ("response_type", "code".to_owned()),
            ("client_id", self.id.clone()),
            ("redirect_uri", REDIRECT.to_owned()),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256".to_owned()),
            ("resource", format!("{}{}", self.base, wish.resource)),
            ("scope", wish.scopes.to_owned()),
            ("state", "s t&a=te".to_owned()),
        ]
    }

    /// Path and query of an authorization request.
    pub fn path(query: &[(&str, String)]) -> String {
        let url = Url::parse_with_params("http://host/oauth/authorize", query).unwrap();
        format!("{}?{}", url.path(), url.query().unwrap())
    }

    /// Signs a person in by a letter, which arrives in the folder `mail`; the session.
    pub async fn enter(&self, mail: &Path, email: &str) -> String {
        let asked = self.browse("", "/signin", Some(&[("email", email)])).await;
        asked.expect(200);
        let token = letter_to(mail, email).await.token();
        let entered = self.browse("", "/signin/link", Some(&[("token", &token)])).await;
        let entered = entered.expect(303);
        let mut cookies = entered.headers.get_all("set-cookie").iter();
        let session = cookies.find_map(|cookie| cookie.to_str().unwrap().strip_prefix("__Host-sluice="));
        session.unwrap().split(';').next().unwrap().to_owned()
    }

    /// Opens a page, or sends a form if there is a body, in the browser of a person with this session.
    pub async fn browse(&self, session: &str, path: &str, form: Option<&[(&str, &str)]>) -> Answer {
        self.browse_from(&self.base, session, path, form).await
    }

    /// Does the same from a page of another origin.
    pub async fn browse_from(&self, origin: &str, session: &str, path: &str, form: Option<&[(&str, &str)]>) -> Answer {
        let sent = self.try_browse(origin, session, path, form).await;
        Answer::of(sent.unwrap()).await.unwrap()
    }

    /// Does the same where the service may die of it.
    pub async fn try_browse(
        &self,
        origin: &str,
        session: &str,
        path: &str,
        form: Option<&[(&str, &str)]>,
    ) -> Result<reqwest::Response, reqwest::Error> {
        let method = if form.is_some() { Method::POST } else { Method::GET };
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .header("cookie", format!("__Host-sluice={session}"))
            .header("accept", "text/html")
            .header("origin", origin);
        if let Some(form) = form {
            request = request.header("content-type", FORM).body(encoded(form));
        }
        request.send().await
    }

    /// Fields of the form on the consent page, as the browser would send them.
    pub async fn consent(&self, session: &str, wish: &Wish<'_>) -> Vec<(&'static str, String)> {
        let path = Self::path(&self.query(wish));
        self.fields(session, &path, wish.scopes, wish.agent).await
    }

    /// Fields of the form on the page at this path, with these scopes and this agent chosen.
    pub async fn fields(&self, session: &str, path: &str, scopes: &str, agent: &str) -> Vec<(&'static str, String)> {
        let page = self.browse(session, path, None).await;
        assert_eq!(page.status, StatusCode::OK, "{}", String::from_utf8_lossy(&page.bytes));
        let html = String::from_utf8(page.bytes).unwrap();
        // The token is also in the form that changes the colours.
        let mut fields = vec![
            ("form_token", hidden(&html, "form_token")),
            ("request", hidden(&html, "request")),
            ("agent", agent.to_owned()),
            ("decision", "approve".to_owned()),
        ];
        fields.extend(scopes.split(' ').map(|scope| ("scopes", scope.to_owned())));
        fields
    }

    /// Lets the person agree, and returns the parameters of the answer to the app.
    pub async fn answer(&self, session: &str, wish: &Wish<'_>) -> Vec<(String, String)> {
        let fields = self.consent(session, wish).await;
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = self.browse(session, "/oauth/authorize", Some(&fields)).await;
        assert_eq!(
            answer.status,
            StatusCode::SEE_OTHER,
            "{}",
            String::from_utf8_lossy(&answer.bytes)
        );
        let location = Url::parse(answer.header("location")).unwrap();
        assert!(location.as_str().starts_with(REDIRECT), "{location}");
        location.query_pairs().into_owned().collect()
    }

    /// Lets the person agree, and returns the code.
    pub async fn code(&self, session: &str, wish: &Wish<'_>) -> String {
        let answer = self.answer(session, wish).await;
        parameter(&answer, "code").to_owned()
    }

    /// Form that exchanges a code.
    pub fn exchange<'a>(&'a self, code: &'a str) -> Vec<(&'static str, &'a str)> {
        vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
            ("client_id", &self.id),
        ]
    }

    /// Sends a form to an endpoint of OAuth, as the app.
    pub async fn send(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("content-type", FORM).body(encoded(form));
        Answer::of(request.send().await.unwrap()).await.unwrap()
    }

    /// Connects the app and returns the answer with its tokens.
    pub async fn connect(&self, session: &str, wish: &Wish<'_>) -> Answer {
        let code = self.code(session, wish).await;
        self.send("/oauth/token", &self.exchange(&code)).await.expect(200)
    }

    /// Renews the access of a connection.
    pub async fn renew(&self, refresh_token: &str) -> Answer {
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
            ("client_id", &self.id),
        ];
        self.send("/oauth/token", &form).await
    }
}

/// A parameter of an authorization answer; empty if there is none.
pub fn parameter<'a>(answer: &'a [(String, String)], name: &str) -> &'a str {
    let found = answer.iter().find(|(other, _)| other == name);
    found.map_or("", |(_, value)| value)
}

/// A form as a browser encodes it.
pub fn encoded(form: &[(&str, &str)]) -> String {
    let url = Url::parse_with_params("http://host", form).unwrap();
    url.query().unwrap_or_default().to_owned()
}

/// Value of a hidden field of a page.
pub fn hidden(html: &str, name: &str) -> String {
    let (_, rest) = html.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    unescaped(rest.split('"').next().unwrap())
}

/// Hidden fields of the form of a page that has this id: what a browser sends with anything that a person chooses there.
pub fn hidden_fields(html: &str, form: &str) -> Vec<(String, String)> {
    let (_, form) = html.split_once(&format!("id=\"{form}\"")).unwrap();
    let (form, _) = form.split_once("</form>").unwrap();
    let field = |input: &str| {
        let (name, rest) = input.split_once('"').unwrap();
        let (_, value) = rest.split_once("value=\"").unwrap();
        (name.to_owned(), unescaped(value.split('"').next().unwrap()))
    };
    form.split("<input type=\"hidden\" name=\"")
        .skip(1)
        .map(field)
        .collect()
}

/// A text of an attribute without the entities that the templates make.
fn unescaped(text: &str) -> String {
    [
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#38;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}
