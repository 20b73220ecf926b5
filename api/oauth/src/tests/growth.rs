use growth::{consume, is_linear};
use serde_json::json;

use types::Timestamp;

use super::Params;
use crate::Scopes;
use crate::assertion::claimed_client;
use crate::document::{freshness, is_document_url};
use crate::redirect::{Application, can_be_registered, matches};
use crate::registration;

#[test]
fn what_an_app_sends_takes_time_that_is_linear_in_its_text() {
    is_linear("a form", 4_000, |text| consume(Params::parse(text.as_bytes())));
    is_linear("a scope", 4_000, |text| consume(Scopes::parse(text)));
    is_linear("an assertion", 4_000, |text| consume(claimed_client(text)));
    is_linear("the lifetime of a document", 4_000, |text| {
        freshness(Some(text));
    });
    for before in ["https://example.org/", "https://", "http://127.0.0.1:", "app:", ""] {
        is_linear("the address of a document", 2_000, |text| {
            is_document_url(&format!("{before}{text}"));
        });
        is_linear("a redirect", 2_000, |text| {
            let uri = format!("{before}{text}");
            can_be_registered(&uri, Application::Native);
            matches(&uri, &uri);
        });
    }
    is_linear("a registration", 4_000, |text| {
        let body = json!({"client_name": text, "redirect_uris": [text], "scope": text}).to_string();
        let now = Timestamp::from_micros(0);
        consume(registration::register(body.as_bytes(), "id".to_owned(), now));
    });
}
