use http::header;
use serde_json::{Value, json};

use crate::testing::browser::{Browser, EMAIL, form};
use crate::testing::{Got, Service, config, during, limits, tariff};

/// A person's download form, filled in and sent.
async fn download(browser: &Browser<'_>, slug: &str, fields: &[(&str, &str)]) -> Got {
    browser.post(&format!("/projects/{slug}/download"), &form(fields)).await
}

/// What may be compared of two pages: the ids of their requests differ.
fn shown(got: &Got) -> (u16, String) {
    let id = got.headers["x-request-id"].to_str().unwrap();
    (got.status.as_u16(), got.text().replace(id, "ID"))
}

/// A dataset of the person who is signed in, with two versions.
async fn scene<'s>(service: &'s Service, more: &Value) -> (Browser<'s>, String, String) {
    let owner = service.operator_at(EMAIL).await;
    let browser = Browser::signed_in_again(service).await;
    let key = service.agent(&owner, "gauge").await;
    service.project(&owner, "weather", more).await;
    for records in [
        &[json!({"name": "=1+1"}), json!({"name": "ordinary"})][..],
        &[json!({"name": "-5"})],
    ] {
        service.merged(&key, "weather", records).await;
    }
    let token = browser.form_token().await;
    (browser, token, key)
}

#[tokio::test]
async fn a_file_has_what_the_export_has() {
    let service = Service::start().await;
    let (browser, token, key) = scene(&service, &json!({})).await;
    for (version, csv) in [("1", "name\n'=1+1\nordinary\n"), ("2", "name\n'=1+1\nordinary\n-5\n")] {
        let fields = |format| [("form_token", token.as_str()), ("format", format), ("version", version)];
        let got = download(&browser, "weather", &fields("csv")).await;
        assert_eq!((got.status.as_u16(), got.text()), (200, csv.to_owned()));
        assert_eq!(
            got.headers[header::CONTENT_TYPE],
            "text/csv; charset=utf-8; header=present"
        );
        assert_eq!(
            got.headers[header::CONTENT_DISPOSITION].to_str().unwrap(),
            format!("attachment; filename=\"weather-v{version}.csv\"")
        );
        assert_eq!(got.headers[header::CACHE_CONTROL], "no-store");
        let lines = download(&browser, "weather", &fields("ndjson")).await;
        let export = service
            .get(&format!("/projects/weather/export?version={version}"), Some(&key))
            .await;
        assert_eq!(lines.text(), export.text());
        for (format, media_type, begins) in [
            ("parquet", "application/vnd.apache.parquet", &b"PAR1"[..]),
            ("arrow", "application/vnd.apache.arrow.stream", &[0xff; 4]),
        ] {
            let got = download(&browser, "weather", &fields(format)).await;
            assert_eq!(
                (got.status.as_u16(), &got.headers[header::CONTENT_TYPE]),
                (200, &media_type.parse().unwrap())
            );
            assert!(got.bytes.starts_with(begins), "{format}");
        }
    }
}

#[tokio::test]
async fn a_form_that_is_not_right_downloads_nothing() {
    let service = Service::start().await;
    let (browser, token, _) = scene(&service, &json!({})).await;
    let token = ("form_token", token.as_str());
    for (fields, status) in [
        (&[token, ("format", "csv")][..], 400),
        (&[token, ("version", "1")], 400),
        (&[token, ("format", "xlsx"), ("version", "1")], 400),
        (&[token, ("format", "csv"), ("version", "0")], 400),
        (&[token, ("format", "csv"), ("version", "one")], 400),
        (&[token, ("format", "csv"), ("version", "1"), ("limit", "5")], 400),
        (&[token, ("format", "csv"), ("version", "3")], 404),
        (&[("format", "csv"), ("version", "1")], 403),
        (&[("form_token", "guessed"), ("format", "csv"), ("version", "1")], 403),
    ] {
        let got = download(&browser, "weather", fields).await;
        assert_eq!(got.status, status, "{fields:?}");
        assert!(!got.headers.contains_key(header::CONTENT_DISPOSITION));
        assert!(
            got.headers[header::CONTENT_TYPE]
                .to_str()
                .unwrap()
                .starts_with("text/html")
        );
    }
    // Nobody who is not signed in, and no page of another site.
    let visitor = Browser::signed_out(&service);
    let fields = [token, ("format", "csv"), ("version", "1")];
    let led = download(&visitor, "weather", &fields).await;
    assert_eq!(
        (led.status.as_u16(), led.headers[header::LOCATION].to_str().unwrap()),
        (303, "/signin?next=/console")
    );
    let mut foreign = browser.request("POST", "/projects/weather/download", &form(&fields));
    foreign
        .headers_mut()
        .insert(header::ORIGIN, "https://evil.example".parse().unwrap());
    assert_eq!(service.send(foreign).await.status, 403);
    assert_eq!(browser.get("/projects/weather/download").await.status, 405);
}

#[tokio::test]
async fn a_private_dataset_is_downloaded_by_its_operator_and_missing_to_all_others() {
    let service = Service::start().await;
    let browser = Browser::signed_in(&service).await;
    let other = service.operator().await;
    let key = service.agent(&other, "theirs").await;
    service
        .project(&other, "weather", &json!({"visibility": "private"}))
        .await;
    service.merged(&key, "weather", &[json!({"name": "first"})]).await;
    let token = browser.form_token().await;
    for (format, version) in [("csv", "1"), ("parquet", "9"), ("xlsx", "1"), ("csv", "0")] {
        let fields = [("form_token", token.as_str()), ("format", format), ("version", version)];
        let hidden = shown(&download(&browser, "weather", &fields).await);
        let missing = shown(&download(&browser, "nothing", &fields).await);
        assert_eq!(hidden.0, 404);
        assert_eq!(hidden, (missing.0, missing.1.replace("nothing", "weather")));
    }
}

#[tokio::test]
async fn a_paid_version_is_downloaded_by_who_bought_it() {
    let service = Service::start().await;
    let buyer = service.operator_at(EMAIL).await;
    let browser = Browser::signed_in_again(&service).await;
    let seller = service.operator().await;
    let key = service.agent(&seller, "seller").await;
    let more = json!({"access": "paid", "price": "0.25"});
    service.project(&seller, "weather", &more).await;
    service.merged(&key, "weather", &[json!({"name": "first"})]).await;
    let agent = service.agent(&buyer, "buyer").await;
    let token = browser.form_token().await;
    let fields = |version| [("form_token", token.as_str()), ("format", "csv"), ("version", version)];
    assert_eq!(download(&browser, "weather", &fields("1")).await.status, 402);
    let operator = service.app.store.operator_by_email(EMAIL).await;
    let operator = operator.unwrap().unwrap().id;
    service.granted(operator, 1_000_000).await;
    let bought = service.call("POST", "/projects/weather/buy", Some(&agent), "{}").await;
    assert_eq!(bought.status, 200);
    assert_eq!(
        download(&browser, "weather", &fields("1")).await.text(),
        "name\nfirst\n"
    );
    service.merged(&key, "weather", &[json!({"name": "second"})]).await;
    assert_eq!(download(&browser, "weather", &fields("2")).await.status, 402);
    assert_eq!(download(&browser, "weather", &fields("1")).await.status, 200);
}

#[tokio::test]
async fn a_download_counts_as_egress_and_spends_no_credits() {
    let prices = pay::Tariff {
        free_egress_bytes: 40,
        ..tariff()
    };
    let service = Service::priced(config(), limits(), prices).await;
    let (browser, token, _) = scene(&service, &json!({})).await;
    let operator = service.app.store.operator_by_email(EMAIL).await;
    let operator = operator.unwrap().unwrap().id;
    service.granted(operator, 1_000_000).await;
    let fields = |format| [("form_token", token.as_str()), ("format", format), ("version", "1")];
    let sent = download(&browser, "weather", &fields("csv")).await;
    assert_eq!(sent.status, 200);
    let (app, month) = (&service.app, service.app.clock.now().month());
    app.egress.store(&app.store, app.clock.now()).await.unwrap();
    assert_eq!(
        app.store.egress(operator, month).await.unwrap(),
        sent.bytes.len() as u64
    );
    // What is left does not suffice, and credits that would pay for more stay: the page says so.
    let refused = download(&browser, "weather", &fields("parquet")).await;
    assert_eq!(refused.status, 402, "{}", refused.text());
    assert!(refused.text().contains("egress of the month is used up"));
    app.egress.store(&app.store, app.clock.now()).await.unwrap();
    assert_eq!(
        app.store.egress(operator, month).await.unwrap(),
        sent.bytes.len() as u64
    );
    let balances = app.store.money().balances(&app.pay.asset, operator).await.unwrap();
    assert_eq!(balances.credits.0, 1_000_000);
    // What is left of the free bytes is still there.
    assert_eq!(download(&browser, "weather", &fields("csv")).await.status, 200);
}

#[tokio::test]
async fn a_damaged_table_is_said_before_a_file_begins() {
    let service = Service::start().await;
    let (browser, token, _) = scene(&service, &json!({})).await;
    for table in std::fs::read_dir(service.tables()).unwrap() {
        for part in std::fs::read_dir(table.unwrap().path()).unwrap() {
            let path = part.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "parquet") {
                std::fs::write(path, b"PAR1").unwrap();
            }
        }
    }
    for format in ["csv", "ndjson", "parquet", "arrow"] {
        let fields = [("form_token", token.as_str()), ("format", format), ("version", "2")];
        assert_eq!(download(&browser, "weather", &fields).await.status, 503, "{format}");
    }
}

#[tokio::test]
async fn a_right_that_ends_while_a_download_waits_ends_it() {
    for format in ["csv", "parquet"] {
        let service = Service::start().await;
        let seller = service.operator().await;
        let key = service.agent(&seller, "seller").await;
        service.project(&seller, "weather", &json!({})).await;
        service.merged(&key, "weather", &[json!({"name": "first"})]).await;
        let browser = Browser::signed_in(&service).await;
        let token = browser.form_token().await;
        let operator = service.app.store.operator_by_email(EMAIL).await.unwrap().unwrap().id;
        let fields = [("form_token", token.as_str()), ("format", format), ("version", "1")];
        let exports = &service.app.process.exports;
        let down = exports.while_awaited(operator, service.took_down("weather"));
        let got = during(download(&browser, "weather", &fields), down).await;
        assert_eq!(got.status, 404, "{}", got.text());
    }
}
