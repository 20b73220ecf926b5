//! A browser of a person, for tests of pages.

use axum::body::Body;
use http::{HeaderValue, Request, header};

use super::{Got, Service};
use crate::call::visit::{CONSOLE, SESSION};

/// Mailbox of the person.
pub(crate) const EMAIL: &str = "ada@example.org";

/// Browser of a person: keeps cookies, and sends the headers that browsers send with a form.
pub(crate) struct Browser<'s> {
    pub(crate) service: &'s Service,
    /// Cookie of the session, `name=value`.
    pub(crate) session: Option<String>,
}

impl<'s> Browser<'s> {
    /// Returns a browser of a person who is not signed in.
    pub(crate) const fn signed_out(service: &'s Service) -> Self {
        Self { service, session: None }
    }

    /// Returns a browser that is signed in as a new operator.
    pub(crate) async fn signed_in(service: &'s Service) -> Self {
        service.operator_at(EMAIL).await;
        Self::signed_in_again(service).await
    }

    /// Returns another browser that is signed in as the same operator.
    pub(crate) async fn signed_in_again(service: &'s Service) -> Self {
        let mut browser = Self::signed_out(service);
        let asked = browser.post("/signin", "email=ada%40example.org").await;
        assert_eq!(asked.status, 200);
        let token = service.mailed_token().await;
        let entered = browser.post("/signin/link", &format!("token={token}")).await;
        assert_eq!(
            (entered.status.as_u16(), &entered.headers[header::LOCATION]),
            (303, &HeaderValue::from_static(CONSOLE))
        );
        let cookies = entered.headers.get_all(header::SET_COOKIE).iter();
        let cookie = cookies
            .map(|cookie| cookie.to_str().unwrap())
            .find(|cookie| cookie.starts_with(SESSION))
            .unwrap();
        for attribute in ["Secure", "HttpOnly", "SameSite=Lax", "Path=/"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        let (pair, _) = cookie.split_once(';').unwrap();
        browser.session = Some(pair.to_owned());
        browser
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Request<Body> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        if let Some(session) = &self.session {
            request = request.header("cookie", format!("other=1; {session}"));
        }
        if method == "POST" {
            request = request
                .header("content-type", "application/x-www-form-urlencoded")
                .header("origin", "http://sluice.test");
        }
        request.body(Body::from(body.to_owned())).unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.service.send(self.request("GET", path, "")).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Got {
        self.service.send(self.request("POST", path, body)).await
    }

    /// Returns the form token of the console's pages.
    pub(crate) async fn form_token(&self) -> String {
        let page = self.get("/console/settings").await;
        assert_eq!(page.status, 200);
        let html = page.text();
        let (_, rest) = html.split_once("name=\"form_token\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }
}

/// Returns fields as the body of a form.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields).finish()
}
