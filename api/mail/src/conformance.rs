//! The suite that every mailer passes.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a suite of tests")]

use async_trait::async_trait;
use types::{Classify as _, Retry};

use crate::{Error, Letter, Mailer};

/// A mailer with the place where its letters arrive.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// Returns the mailer.
    fn mailer(&self) -> &dyn Mailer;
    /// Returns the letters that have arrived.
    async fn arrived(&self) -> Vec<Arrived>;
}

/// A letter at its destination.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// Recipients of the envelope, where there is one.
    pub recipients: Option<Vec<String>>,
    /// The message with its headers (RFC 5322).
    pub text: String,
}

impl Arrived {
    /// Returns the value of the header `name`.
    pub fn header(&self, name: &str) -> Option<String> {
        let prefix = format!("{name}: ");
        let head = self.text.split("\r\n\r\n").next()?;
        head.split("\r\n")
            .find_map(|line| line.strip_prefix(&prefix))
            .map(str::to_owned)
    }

    fn headers(&self) -> Vec<&str> {
        let head = self.text.split("\r\n\r\n").next().unwrap_or_default();
        let names = head.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
        names.filter_map(|line| line.split(':').next()).collect()
    }
}

/// Returns a letter with this id.
pub fn letter(id: &str) -> Letter {
    Letter {
        id: id.to_owned(),
        to: "ada@example.com".to_owned(),
        subject: "Confirm your address".to_owned(),
        text: "Open this link:\nhttps://sluice.example/verify?token=abc\n".to_owned(),
        html: "<p>Open <a href=\"https://sluice.example/verify\">this link</a></p>\n".to_owned(),
    }
}

/// Runs the suite on mailers that `fresh` makes.
pub async fn all<F: Fixture>(fresh: impl AsyncFn() -> F) {
    a_letter_arrives_with_its_texts(&fresh().await).await;
    a_letter_that_is_sent_again_has_the_same_id(&fresh().await).await;
    no_text_adds_a_header_or_a_recipient(&fresh().await).await;
    letters_of_other_scripts_arrive(&fresh().await).await;
}

async fn a_letter_arrives_with_its_texts(fixture: &impl Fixture) {
    fixture.mailer().send(&letter("verify-1")).await.unwrap();
    let arrived = fixture.arrived().await;
    assert_eq!(arrived.len(), 1);
    assert_eq!(
        arrived[0].header("Message-ID").as_deref(),
        Some("<verify-1@example.org>")
    );
    assert_eq!(arrived[0].header("To").as_deref(), Some("ada@example.com"));
    assert_eq!(arrived[0].header("Subject").as_deref(), Some("Confirm your address"));
    assert!(
        arrived[0]
            .header("From")
            .expect("a sender")
            .contains("sluice@example.org")
    );
    assert!(arrived[0].header("Date").is_some());
    // Both forms arrive, and the one that every program shows is the first.
    let kind = arrived[0].header("Content-Type").expect("a type");
    assert!(kind.starts_with("multipart/alternative"), "{kind}");
    let (text, html) = arrived[0]
        .text
        .split_once("Content-Type: text/html")
        .expect("two forms");
    assert!(text.contains("https://sluice.example/verify?token=abc"), "{text}");
    assert!(text.contains("Content-Type: text/plain; charset=utf-8"), "{text}");
    assert!(html.contains("<p>Open <a href"), "{html}");
    if let Some(recipients) = &arrived[0].recipients {
        assert_eq!(recipients, &["ada@example.com"]);
    }
}

async fn a_letter_that_is_sent_again_has_the_same_id(fixture: &impl Fixture) {
    for _ in 0..2 {
        fixture.mailer().send(&letter("verify-2")).await.unwrap();
    }
    for arrived in fixture.arrived().await {
        assert_eq!(arrived.header("Message-ID").as_deref(), Some("<verify-2@example.org>"));
    }
}

async fn no_text_adds_a_header_or_a_recipient(fixture: &impl Fixture) {
    let evil = "\r\nBcc: eve@example.net";
    for changed in [
        Letter {
            to: format!("ada@example.com{evil}"),
            ..letter("a")
        },
        Letter {
            to: "ada@example.com, eve@example.net".to_owned(),
            ..letter("a")
        },
        Letter {
            to: "ada@example.com>\r\nRCPT TO:<eve@example.net".to_owned(),
            ..letter("a")
        },
        Letter {
            subject: format!("Hello{evil}"),
            ..letter("a")
        },
        Letter {
            subject: "Hello\nBcc: eve@example.net".to_owned(),
            ..letter("a")
        },
        Letter {
            id: format!("a{evil}"),
            ..letter("a")
        },
    ] {
        let refused = fixture.mailer().send(&changed).await.expect_err("it is no letter");
        assert!(matches!(refused, Error::Letter(_)), "{refused:?}");
        assert_eq!(refused.retry(), Retry::Never);
    }
    assert!(fixture.arrived().await.is_empty());
    // The text is no header, and a line with a full stop does not end the letter (RFC 5321 section 4.5.2).
    let text = format!("{evil}\r\n.\r\nQUIT\r\nstill the same letter\r\n");
    fixture.mailer().send(&Letter { text, ..letter("b") }).await.unwrap();
    let arrived = fixture.arrived().await;
    assert_eq!(arrived.len(), 1);
    assert!(!arrived[0].headers().contains(&"Bcc"), "{:?}", arrived[0]);
    assert!(arrived[0].text.contains("still the same letter"));
}

async fn letters_of_other_scripts_arrive(fixture: &impl Fixture) {
    let letter = Letter {
        subject: "주소를 확인하세요 — déjà vu".to_owned(),
        text: "안녕하세요\n".to_owned(),
        html: "<p>안녕하세요</p>\n".to_owned(),
        ..letter("c")
    };
    fixture.mailer().send(&letter).await.unwrap();
    let arrived = fixture.arrived().await;
    assert!(
        arrived[0].text.is_ascii(),
        "headers and body are encoded: {}",
        arrived[0].text
    );
    assert!(arrived[0].header("Subject").expect("a subject").contains("=?utf-8?"));
}
