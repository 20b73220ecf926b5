use std::time::Duration;

use data_encoding::BASE64;
use http::StatusCode;
use serde_json::json;

use crate::testing::Service;

const INFER: &str = "/files/infer";

#[tokio::test]
async fn a_file_comes_as_text_as_base64_or_bare() {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "bob").await;
    let text = json!({"text": "n\n1\n"}).to_string();
    let base64 = json!({"base64": BASE64.encode(b"n\n1\n")}).to_string();
    for (credential, body) in [(&key, &text), (&token, &base64)] {
        let got = service.call("POST", INFER, Some(credential), body).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let file = got.json();
        assert_eq!(file["textBytes"], 4);
        assert_eq!(file["projects"], json!({"active": 0, "limit": 3}));
    }
    let bare = service
        .call_as("POST", INFER, Some(&key), "application/octet-stream", "{\"n\": 1}")
        .await;
    assert_eq!((bare.status, &bare.json()["textBytes"]), (StatusCode::OK, &json!(8)));
    for body in ["{}", r#"{"text": "", "base64": ""}"#, r#"{"base64": "?"}"#] {
        let got = service.call("POST", INFER, Some(&key), body).await;
        assert_eq!(got.status, 400, "{body}: {}", got.text());
    }
    assert_eq!(service.call("POST", INFER, None, &text).await.status, 401);
    let lines = service.call("POST", "/files/convert", Some(&key), &text).await;
    assert_eq!(lines.text(), "\n{\"n\":1}\n", "line 2 is row 2");
}

#[tokio::test]
async fn a_file_that_is_not_read_says_why() {
    let service = Service::start().await;
    let token = service.operator().await;
    for (text, code) in [
        ("damaged", "file_refused"),
        ("large", "file_too_large"),
        ("open", "file_open"),
    ] {
        let body = json!({"text": text}).to_string();
        let got = service.call("POST", "/files/convert", Some(&token), &body).await;
        assert_eq!((got.status.as_u16(), &got.json()["error"]), (400, &json!(code)));
    }
}

#[tokio::test]
async fn two_operators_that_repeat_files_leave_a_third_its_place() {
    let service = Service::start().await;
    let tokens = [
        service.operator().await,
        service.operator().await,
        service.operator().await,
    ];
    let (hang, file) = (
        json!({"text": "hang"}).to_string(),
        json!({"text": "n\n1\n"}).to_string(),
    );
    let first = service.call("POST", INFER, Some(&tokens[0]), &hang);
    let second = service.call("POST", INFER, Some(&tokens[1]), &hang);
    let others = async {
        service.files.hanging.next().await;
        service.files.hanging.next().await;
        let again = service.call("POST", INFER, Some(&tokens[0]), &file).await;
        assert_eq!((again.status.as_u16(), &again.json()["error"]), (429, &json!("busy")));
    };
    tokio::select! {
        _ = async { tokio::join!(first, second) } => panic!("they hang"),
        () = others => {}
    }
    // Both have gone, and so have their places.
    let third = service.call("POST", INFER, Some(&tokens[2]), &file).await;
    assert_eq!(third.status, 200, "{}", third.text());
}

#[tokio::test]
async fn an_operator_has_a_minute_of_processor_time_in_ten_minutes() {
    let service = Service::start().await;
    let (token, other) = (service.operator().await, service.operator().await);
    let body = json!({"text": "n\n1\n"}).to_string();
    for call in 0..4 {
        let got = service.call("POST", INFER, Some(&token), &body).await;
        assert_eq!(got.status, 200, "call {call} of 15 seconds");
    }
    let spent = service.call("POST", INFER, Some(&token), &body).await;
    assert_eq!((spent.status.as_u16(), &spent.json()["error"]), (429, &json!("busy")));
    assert!(spent.headers.contains_key("retry-after"));
    assert_eq!(service.call("POST", INFER, Some(&other), &body).await.status, 200);
    service.clock.advance(Duration::from_mins(10));
    assert_eq!(service.call("POST", INFER, Some(&token), &body).await.status, 200);
}
