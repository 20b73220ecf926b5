//! Limits of fields, one below, at and one above, in characters of one to four bytes.

use super::*;

/// Characters of one, three and four bytes.
const CHARACTERS: [&str; 3] = ["a", "한", "🦀"];

fn long(character: &str, count: usize) -> String {
    character.repeat(count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_have_their_lengths_in_code_points() {
    let world = World::start().await;
    for (member, least, most) in [("title", 1, 200), ("sourceDeclaration", 4, 2_000), ("body", 1, 50_000)] {
        for (number, character) in CHARACTERS.into_iter().enumerate() {
            for (count, status) in [(least - 1, 400), (least, 201), (most, 201), (most + 1, 400)] {
                // A text of its own, unless the text is what is measured.
                let own = format!("{member} {number} {count}");
                let text = long(character, count);
                let body = if member == "body" { text.clone() } else { own };
                let got = world.submit_with(&body, &json!({ member: text })).await;
                assert_eq!(got.status, status, "{member} {count} {character}: {}", got.text());
                if status == 400 {
                    assert_eq!(got.json()["details"][0]["path"], format!("/{member}"));
                }
            }
        }
    }
}

#[tokio::test]
async fn forms_of_fields_are_those_of_the_interface() {
    let world = World::start().await;
    let mut number = 0;
    let mut submit = async |more: Value| {
        number += 1;
        let got = world.submit_with(&format!("Text {number}."), &more).await;
        (got.status.as_u16(), got.json())
    };
    for (category, status) in [
        ("a", 201),
        ("a-b-3", 201),
        ("korea-domain", 201),
        (long("a", 50).as_str(), 201),
        (long("a", 51).as_str(), 400),
        ("", 400),
        ("A", 400),
        ("-a", 400),
        ("a-", 400),
        ("a--b", 400),
        ("a_b", 400),
        ("가", 400),
    ] {
        assert_eq!(submit(json!({"category": category})).await.0, status, "{category}");
    }
    for (license, status) in [
        ("CC0-1.0", 201),
        ("platform-standard", 201),
        ("MIT", 400),
        ("", 400),
        ("cc0-1.0", 400),
    ] {
        assert_eq!(submit(json!({"license": license})).await.0, status, "{license}");
    }
    for (price, status, micro, locked) in [
        (json!(null), 201, 10_000, false),
        (json!(0), 201, 0, false),
        (json!("0.01"), 201, 10_000, true),
        (json!(0.25), 201, 250_000, true),
        (json!("999999999.99"), 201, 999_999_999_990_000, true),
        (json!("0.001"), 400, 0, false),
        (json!(-1), 400, 0, false),
        (json!("1e2"), 400, 0, false),
        (json!(1_000_000_000), 400, 0, false),
        (json!(true), 400, 0, false),
    ] {
        let (got, body) = submit(json!({"price": price})).await;
        assert_eq!(got, status, "{price}: {body}");
        if got == 201 {
            assert_eq!(
                (body["priceMicro"].as_i64(), body["locked"].as_bool()),
                (Some(micro), Some(locked)),
                "{price}"
            );
        }
    }
    for (more, path) in [
        (json!({"title": "two\nlines"}), "/title"),
        (json!({"title": "bell\u{7}"}), "/title"),
        (json!({"body": "form\u{c}feed"}), "/body"),
        (json!({"trialSale": "yes"}), "/trialSale"),
        (json!({"title": null}), "/title"),
    ] {
        let (status, body) = submit(more.clone()).await;
        assert_eq!(
            (status, body["details"][0]["path"].as_str()),
            (400, Some(path)),
            "{more}"
        );
    }
    assert_eq!(submit(json!({"extra": 1})).await.0, 400);
    assert_eq!(submit(json!({"body": "tab\tand\nlines\r\n"})).await.0, 201);
}

/// A revision names the terms of the unit as what never changes.
#[tokio::test]
async fn a_revision_does_not_change_the_terms() {
    let world = World::start().await;
    let id = world.published("One.", 60).await;
    for more in [
        json!({"license": "CC0-1.0"}),
        json!({"price": 0}),
        json!({"trialSale": true}),
    ] {
        let mut body = json!({"body": "Two."});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let got = world
            .post(&format!("/knowledge/{id}/revise"), Some(&world.author), &body)
            .await;
        assert_eq!(got.status, 400, "{more}");
        assert!(got.text().contains("never changes"), "{}", got.text());
    }
}
