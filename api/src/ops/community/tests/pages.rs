//! Pages of the board, and what agents said on the pages of items.

use types::vocabulary::{ReportKind, ReportReason};

use super::*;

/// A text that would do harm as markup, and that turns the direction of what follows it.
const HOSTILE: &str = "<script>alert(1)</script> [a](javascript:alert(1)) \u{5e9}\u{5dc} ![p](https://evil.example/p)";

async fn page(board: &Board, path: &str) -> String {
    let request = http::Request::get(path).header("accept", "text/html");
    let request = request.body(axum::body::Body::empty()).unwrap();
    let got = board.world.service.send(request).await;
    assert_eq!(got.status, 200, "{path}: {}", got.text());
    let text = got.text();
    assert!(text.len() <= 100 << 10, "{path}: {} bytes", text.len());
    for harm in ["<script>alert", "href=\"javascript:", "evil.example/p\""] {
        assert!(!text.contains(harm), "{path} has {harm}");
    }
    text
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[tokio::test]
async fn a_request_and_the_list_have_pages() {
    let board = Board::start().await;
    let more = json!({
        "title": HOSTILE, "budget": "0.40", "category": "data-source",
        "fields": [{"name": "gauge", "type": "string", "description": HOSTILE}],
    });
    let path = board.request("knowledge", &more).await;
    let unit = board.unit("Checkpoints", &json!("0.25")).await;
    let answers = format!("{path}/answers");
    let noted = json!({"unitId": unit, "note": format!("{HOSTILE} noted")});
    let answered = board.sells(&answers, &noted).await;
    assert_eq!(answered.status, 201, "{}", answered.text());
    let here = path.strip_prefix("/community").unwrap();
    let shown = page(&board, here).await;
    has(
        &shown,
        &[
            "&#60;script&#62;alert(1)",
            "$0.40",
            &format!("href=\"/units/{unit}\""),
            "$0.25",
            "answer_request",
            &format!("{answers} \\"),
        ],
    );
    let chosen = board
        .asks(&format!("{path}/choose"), &json!({"answerId": answered.json()["id"]}))
        .await;
    assert_eq!(chosen.status, 200, "{}", chosen.text());
    board.buys(&unit).await;
    let shown = page(&board, here).await;
    has(
        &shown,
        &["fulfilled", ">chosen<", "bought by the asker", "<bdi>Somebody</bdi>"],
    );
    assert!(!shown.contains("answer_request"), "nobody answers it any more");
    board.request("dataset", &json!({"title": "Tides of the quay"})).await;
    let all = page(&board, "/requests?status=all").await;
    has(
        &all,
        &[
            &format!("href=\"{here}\""),
            "Tides of the quay",
            "up to $0.40",
            "<b class=\"b\">2</b>",
        ],
    );
    for path in ["/requests", "/requests?status=&kind=&q=quay", "/requests?status=open"] {
        let open = page(&board, path).await;
        has(
            &open,
            &[
                "Tides of the quay",
                "<b class=\"b\">1</b>",
                "asked by <a href=\"/agents/stranger\"><bdi>stranger</bdi></a>, <bdi>Somebody</bdi>",
            ],
        );
        assert!(!open.contains(here), "{open}");
    }
    has(
        &page(&board, "/requests?category=tool-usage").await,
        &["No request here"],
    );
    for (path, status) in [
        ("/requests?status=lost", 404),
        ("/requests?page=0", 400),
        ("/requests?page=9", 200),
    ] {
        assert_eq!(board.world.get(path, None).await.status, status, "{path}");
    }
    let map = board.world.get("/sitemap.xml", None).await.text();
    has(
        &map,
        &[
            "<loc>http://sluice.test/requests</loc>",
            &format!("<loc>http://sluice.test{here}</loc>"),
        ],
    );
    has(&page(&board, "/activity").await, &[&format!("href=\"{here}\"")]);
}

/// A request that is taken down has a page that says so, and is missing in the list and in the map.
#[tokio::test]
async fn a_request_that_is_down_has_no_page() {
    let board = Board::start().await;
    let path = board.request("knowledge", &json!({})).await;
    let here = path.strip_prefix("/community").unwrap();
    let id = here.strip_prefix("/requests/").unwrap();
    page(&board, here).await;
    let moderation = board.world.service.app.store.moderation();
    let now = board.world.service.clock.now();
    let hidden = moderation
        .hide(ReportKind::Topic, id.to_owned(), Some(ReportReason::Spam), now)
        .await;
    assert!(hidden.unwrap());
    let got = board.world.get(here, None).await;
    assert_eq!(got.status, 404);
    // Who has the link learns that something was there, and not what.
    let said = got.text();
    assert!(
        said.contains("This request is gone") && said.contains("taken down"),
        "{said}"
    );
    assert!(!said.contains("Readings of") && !said.contains("spam"), "{said}");
    for missing in ["019a0000-0000-7000-8000-000000000000", "nonsense"] {
        let missing = board.world.get(&format!("/requests/{missing}"), None).await;
        assert_eq!(missing.status, 404);
        assert!(!missing.text().contains("is gone"), "{}", missing.text());
    }
    for path in ["/requests", "/sitemap.xml", "/activity"] {
        assert!(!board.world.get(path, None).await.text().contains(id), "{path}");
    }
}

/// Reviews, questions and comments stand on the pages of a unit and of a dataset, with what the seller answers.
#[tokio::test]
async fn items_show_what_agents_said_of_them() {
    let board = Board::start().await;
    let world = &board.world;
    let unit = board.unit("Checkpoints", &json!("0.25")).await;
    board.buys(&unit).await;
    world
        .service
        .project(&world.author, "tides", &json!({"access": "paid", "price": "0.50"}))
        .await;
    world
        .service
        .merged(&world.author, "tides", &[json!({"name": "a"})])
        .await;
    let bought = board.asks("/projects/tides/buy", &json!({})).await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    for (name, value, item, here) in [
        (
            "unitId",
            unit.as_str(),
            format!("/knowledge/{unit}"),
            format!("/units/{unit}"),
        ),
        (
            "dataset",
            "tides",
            "/projects/tides".to_owned(),
            "/projects/tides".to_owned(),
        ),
    ] {
        let question = json!({name: value, "kind": "question", "body": format!("{HOSTILE} asked")});
        let asked = board.asks("/community/reviews", &question).await;
        assert_eq!(asked.status, 201, "{}", asked.text());
        let comments = format!("{item}/comments");
        let reply = json!({"body": format!("{HOSTILE} replied"), "parentId": asked.json()["id"]});
        assert_eq!(board.sells(&comments, &reply).await.status, 201);
        let comment = json!({"body": format!("{HOSTILE} remarked")});
        assert_eq!(board.asks(&comments, &comment).await.status, 201);
        let request = http::Request::get(&here).header("accept", "text/html");
        let request = request.body(axum::body::Body::empty()).unwrap();
        let shown = world.service.send(request).await;
        assert_eq!(shown.status, 200, "{here}: {}", shown.text());
        let text = shown.text();
        has(
            &text,
            &[
                "evil.example/p) asked",
                "evil.example/p) replied",
                "evil.example/p) remarked",
                ">seller<",
                "verified buyer",
            ],
        );
        assert!(
            !text.contains("<script>alert") && !text.contains("href=\"javascript:"),
            "{here}"
        );
    }
}

/// Reviews and comments that do not fit on the page of an item are behind links.
#[tokio::test]
async fn what_is_further_back_has_links() {
    let board = Board::start().await;
    let unit = board.unit("Checkpoints", &json!("0.25")).await;
    board.buys(&unit).await;
    for number in 0..=50 {
        let comment = json!({"body": format!("Remark {number} of the quay.")});
        let made = board.asks(&format!("/knowledge/{unit}/comments"), &comment).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let question = json!({"unitId": unit, "kind": "question", "body": format!("Is it so in case {number}?")});
        let made = board.asks("/community/reviews", &question).await;
        assert_eq!(made.status, 201, "{}", made.text());
    }
    // Returns the address of the link with these words at a section.
    let link = |text: &str, section: &str, words: &str| {
        let mut links = text.split("<a href=\"").skip(1);
        let found = links.find(|link| link.contains(&format!("#{section}\"")) && link.contains(&format!(">{words}<")));
        let href = found?.replace("&#38;", "&");
        href.split('#').next().map(str::to_owned)
    };
    let here = format!("/units/{unit}");
    let first = page(&board, &here).await;
    has(&first, &["Remark 0 of", "Remark 49 of", "case 50?", "case 1?"]);
    assert!(!first.contains("Remark 50 of") && !first.contains("case 0?"));
    assert_eq!(link(&first, "h-q", "First page"), None);
    let later = link(&first, "h-c", "Later").unwrap();
    let second = page(&board, &later).await;
    has(&second, &["Remark 50 of", "case 50?"]);
    assert!(!second.contains("Remark 49 of"));
    assert_eq!(link(&second, "h-c", "Later"), None);
    // A link of one section keeps the place in the other.
    let both = page(&board, &link(&second, "h-q", "Earlier").unwrap()).await;
    has(&both, &["Remark 50 of", "case 0?"]);
    assert!(!both.contains("case 1?"));
    assert_eq!(link(&both, "h-q", "Earlier"), None);
    assert_eq!(link(&both, "h-q", "First page"), Some(later));
    for bad in ["reviews=0", "reviews=1001", "comments=x", "ratings=x"] {
        let got = board.world.get(&format!("{here}?{bad}"), None).await;
        assert_eq!(got.status, 400, "{bad}");
    }
}
