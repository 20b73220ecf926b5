//! What browsers and programs on pages of other sites get: origins, and documents that are kept.

use super::*;

pub(super) async fn sent(service: &Service, method: &str, path: &str, headers: &[(&str, &str)]) -> crate::testing::Got {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    service.send(request.body(Body::empty()).unwrap()).await
}

/// Path of an operation, with names that nothing has.
fn filled(path: &str) -> String {
    let path = path.replace("{slug}", "no-such").replace("{id}", "not-an-id");
    path.replace("/activity/events", "/activity/events?seconds=1")
}

#[tokio::test]
async fn pages_of_other_sites_read_what_no_cookie_opens_and_nothing_else() {
    let service = Service::start().await;
    let asked = ("access-control-request-method", "GET");
    let page = ("accept", "text/html");
    for operation in crate::operations(&limits()).iter() {
        let spec = &operation.spec;
        let path = filled(spec.path);
        // Each caller has a number of calls a minute.
        service.clock.advance(std::time::Duration::from_mins(1));
        let is_program = spec.surface == ApiKind::Rest;
        let accept = if is_program { ("accept", "*/*") } else { page };
        let got = sent(
            &service,
            spec.method.as_str(),
            &path,
            &[("origin", "https://app.example"), accept],
        )
        .await;
        let allowed = got
            .headers
            .get("access-control-allow-origin")
            .map(|any| any.to_str().unwrap());
        assert_eq!(allowed, is_program.then_some("*"), "{} {path}", spec.method);
        assert!(!got.headers.contains_key("access-control-allow-credentials"), "{path}");
        let preflight = sent(&service, "OPTIONS", &path, &[("origin", "https://app.example"), asked]).await;
        if is_program {
            assert_eq!(preflight.status, 204, "{path}");
            let methods = preflight.headers["access-control-allow-methods"].to_str().unwrap();
            assert!(
                methods.split(", ").any(|method| spec.method == *method),
                "{path} {methods}"
            );
            let headers = preflight.headers["access-control-allow-headers"].to_str().unwrap();
            assert!(headers.contains("*, Authorization"), "{headers}");
        }
    }
    for path in ["/console", "/signin", "/oauth/authorize", "/assets/0/sluice.css"] {
        let preflight = sent(&service, "OPTIONS", path, &[("origin", "https://app.example"), asked]).await;
        assert!(!preflight.headers.contains_key("access-control-allow-origin"), "{path}");
    }
    for path in ["/mcp", "/mcp/directory", "/uploads/x/1"] {
        let preflight = sent(&service, "OPTIONS", path, &[("origin", "https://app.example"), asked]).await;
        assert_eq!(preflight.status, 204, "{path}");
        let got = sent(&service, "PUT", path, &[]).await;
        assert_eq!(got.headers["access-control-allow-origin"], "*", "{path}");
    }
    // Nobody else has a use for the method.
    assert_eq!(sent(&service, "OPTIONS", "/projects", &[]).await.status, 405);
}

#[tokio::test]
async fn documents_and_pages_ignore_what_links_grow_and_calls_do_not() {
    let service = Service::start().await;
    let mut documents = Vec::new();
    for operation in crate::operations(&limits())
        .iter()
        .filter(|one| one.spec.method == Method::GET)
    {
        let spec = &operation.spec;
        let is_page = spec.surface == ApiKind::Page;
        if spec.opaque || !(spec.accepts.is_empty() || is_page || spec.accepts == OPTIONAL) {
            continue;
        }
        let path = filled(spec.path);
        let mark = if path.contains('?') { '&' } else { '?' };
        let accept = if is_page { "text/html" } else { "*/*" };
        let grown = format!("{path}{mark}utm_source=a&utm_source=b&fbclid=1");
        let plain = sent(&service, "GET", &path, &[("accept", accept)]).await;
        let got = sent(&service, "GET", &grown, &[("accept", accept)]).await;
        if spec.lenient || is_page {
            assert_eq!(got.status, plain.status, "{grown}");
        } else {
            assert!(
                [400, 401, 404].contains(&got.status.as_u16()),
                "{grown}: {}",
                got.text()
            );
        }
        if spec.lenient {
            documents.push(spec.path);
        }
    }
    for expected in [
        "/terms",
        "/guide/agents.md",
        "/llms.txt",
        "/openapi.json",
        "/activity.atom",
        "/pricing.json",
    ] {
        assert!(documents.contains(&expected), "{expected}");
    }
    assert_eq!(sent(&service, "GET", "/projects?utm_source=a", &[]).await.status, 400);
}

#[tokio::test]
async fn a_document_that_the_caller_has_is_not_sent_again() {
    let service = Service::start().await;
    for path in [
        "/openapi.json",
        "/llms.txt",
        "/activity.atom",
        "/sitemap.xml",
        "/robots.txt",
    ] {
        let first = sent(&service, "GET", path, &[]).await;
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        assert_eq!(
            (first.status.as_u16(), &first.headers["cache-control"]),
            (200, &HeaderValue::from_static("no-cache"))
        );
        for tags in [
            tag.clone(),
            format!("\"other\", {tag}"),
            tag.replace("W/", ""),
            "*".to_owned(),
        ] {
            let again = sent(&service, "GET", path, &[("if-none-match", &tags)]).await;
            assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0), "{path} {tags}");
            assert_eq!(again.headers["etag"], tag.as_str());
            assert!(!again.headers.contains_key("content-type"), "{path}");
        }
        let other = sent(&service, "GET", path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(other.bytes, first.bytes, "{path}");
    }
}
