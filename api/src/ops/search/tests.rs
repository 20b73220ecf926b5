use std::time::Duration;

use search::{SearchFilter, SearchMode, SearchQuery};
use serde_json::json;
use store::{Allowance, HourlyLimit, NewUnit, UnitOutcome};
use types::unit::{Judge, UnitResolution, UnitScores};
use types::vocabulary::{Language, TakedownReason};
use types::{OperatorId, UnitId};

use crate::state::search::SearchIndex;
use crate::testing::{Got, Service};

/// A service with an operator, an agent and its key.
async fn scene() -> (Service, String, (types::AgentId, OperatorId)) {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "writer").await;
    let principal = service.app.principal(crate::secrets::hash(&key)).await.unwrap();
    let author = match principal.as_deref() {
        Some(store::Principal::Agent { agent, operator, .. }) => (*agent, *operator),
        other => panic!("{other:?}"),
    };
    (service, token, author)
}

async fn refresh(service: &Service) {
    service.app.process.searching.refresh(&service.app.store).await.unwrap();
}

fn titles(got: &Got) -> Vec<String> {
    assert_eq!(got.status, 200, "{}", got.text());
    let items = got.json()["items"].as_array().unwrap().clone();
    items
        .iter()
        .map(|item| item["title"].as_str().unwrap().to_owned())
        .collect()
}

/// Publishes a unit of an agent, as a worker and the projector would.
async fn publish(
    service: &Service,
    author: (types::AgentId, OperatorId),
    title: &str,
    price_micro: Option<i64>,
) -> UnitId {
    let now = service.app.clock.now();
    let id = UnitId::new(now);
    let body = format!("{title}. Measured with 16 clients on version 15.2: p99 was 95 ms, then 12 ms.");
    let new = NewUnit {
        id,
        revises: None,
        agent: author.0,
        operator: author.1,
        title: title.to_owned(),
        text_hash: *blake3::hash(body.as_bytes()).as_bytes(),
        length: body.chars().count() as u64,
        body,
        category: "performance-tuning".to_owned(),
        source_declaration: "Ran it here.".to_owned(),
        language: Language::English,
        license: "CC0-1.0".to_owned(),
        price_micro,
        trial_sale: false,
        submission: Vec::new(),
        held: None,
        now,
        first_sweep: now,
    };
    let hourly = HourlyLimit {
        most: 100,
        window: Duration::from_hours(1),
    };
    let allowance = Allowance {
        limit: 100,
        day: now.day(),
    };
    let submitted = service
        .app
        .store
        .knowledge()
        .submit(new, hourly, allowance)
        .await
        .unwrap();
    assert_eq!(submitted, store::UnitSubmitted::Submitted);
    let resolution = UnitResolution::Published {
        scores: UnitScores {
            accuracy: 70,
            novelty: 70,
            reproducibility: 70,
            specificity: 70,
            total: 70,
        },
        judge: Judge::heuristic("rubric-1"),
        language: Language::English,
        near: None,
        embedder: None,
    };
    let outcome = UnitOutcome {
        id,
        generation: 0,
        at: now,
        resolution,
        report: Vec::new(),
    };
    assert!(service.app.store.knowledge().apply(vec![outcome]).await.unwrap()[0].changed);
    id
}

#[tokio::test]
async fn a_published_unit_is_found_until_it_is_retired_or_taken_down() {
    let (service, _, author) = scene().await;
    assert_eq!(service.get("/search?q=pool", None).await.status, 503);
    refresh(&service).await;
    assert_eq!(titles(&service.get("/search?q=pool", None).await), [""; 0]);
    let pool = publish(&service, author, "Pool of connections", None).await;
    let lock = publish(&service, author, "Locks of a table", Some(250_000)).await;
    refresh(&service).await;
    for mode in ["keyword", "semantic", "auto"] {
        let got = service
            .get(&format!("/search?q=connection+pools&mode={mode}"), None)
            .await;
        assert_eq!(titles(&got)[0], "Pool of connections", "{mode}");
        assert_eq!(got.json()["mode"], mode);
    }
    let got = service.get("/search?q=locks&mode=keyword", None).await.json();
    let item = &got["items"][0];
    assert_eq!(
        (item["kind"].as_str(), item["id"].as_str()),
        (Some("unit"), Some(lock.to_string().as_str()))
    );
    assert_eq!(
        (item["priceMicro"].as_i64(), item["locked"].as_bool()),
        (Some(250_000), Some(true))
    );
    assert_eq!(
        (item["score"].as_i64(), item["scores"]["accuracy"].as_f64()),
        (Some(70), Some(7.0))
    );
    assert_eq!(got["facets"]["price"], json!([{"value": "priced", "count": 1}]));
    let unpriced = service.get("/search?q=pool&mode=keyword", None).await.json();
    assert_eq!(
        (&unpriced["items"][0]["priceMicro"], &unpriced["items"][0]["locked"]),
        (&json!(10_000), &json!(false))
    );

    // The index is not told, and the answer still leaves them out.
    let now = service.app.clock.now();
    let store = &service.app.store;
    assert_eq!(
        store.knowledge().retire(pool, pool, now).await.unwrap(),
        store::UnitRetired::Retired
    );
    assert!(
        store
            .knowledge()
            .take_down(lock, Some(TakedownReason::Checking), now)
            .await
            .unwrap()
    );
    for query in ["", "q=pool", "q=locks", "q=locks&mode=semantic"] {
        assert_eq!(
            titles(&service.get(&format!("/search?{query}"), None).await),
            [""; 0],
            "{query}"
        );
    }
    refresh(&service).await;
    assert_eq!(service.get("/search", None).await.json()["total"], 0);
    assert!(store.knowledge().take_down(lock, None, now).await.unwrap());
    refresh(&service).await;
    assert_eq!(titles(&service.get("/search", None).await), ["Locks of a table"]);
}

#[tokio::test]
async fn a_start_opens_the_index_on_disk_and_catches_up_or_builds_it_anew() {
    let (service, token, author) = scene().await;
    let folder = tempfile::tempdir().unwrap();
    let store = &service.app.store;
    let started = async |store: &store::Store| {
        let searching = SearchIndex::default().with_folder(folder.path().to_owned());
        searching.refresh(store).await.unwrap();
        searching
    };
    let found = |searching: &SearchIndex, text: &str| {
        let query = SearchQuery {
            order: search::SearchOrder::Best,
            text: text.to_owned(),
            vector: None,
            mode: SearchMode::Auto,
            filter: SearchFilter::default(),
            offset: 0,
            limit: 10,
        };
        searching
            .index()
            .unwrap()
            .search(&query, service.app.clock.now())
            .unwrap()
            .hits
            .len()
    };
    let generations = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    publish(&service, author, "Pool of connections", None).await;
    let lock = publish(&service, author, "Locks of a table", None).await;
    assert_eq!(found(&started(store).await, "pool"), 1);
    assert_eq!(generations(), ["1"]);

    // What changed while no process ran is read, and nothing else is built.
    let now = service.app.clock.now();
    assert_eq!(
        store.knowledge().retire(lock, lock, now).await.unwrap(),
        store::UnitRetired::Retired
    );
    service.project(&token, "tides", &json!({"title": "Tide gauges"})).await;
    let searching = started(store).await;
    assert_eq!((found(&searching, "locks"), found(&searching, "gauges")), (0, 1));
    assert_eq!(generations(), ["1"]);
    // Nothing changed, and the index is the same again.
    let again = started(store).await;
    assert_eq!((found(&again, "pool"), found(&again, "locks")), (1, 0));
    assert_eq!(
        (again.index().unwrap().count(), generations()),
        (2, vec!["1".to_owned()])
    );

    // A damaged file is noticed.
    let damage = |generation: &str| {
        let files = std::fs::read_dir(folder.path().join(generation)).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let path = paths
            .into_iter()
            .find(|path| path.extension().is_some_and(|end| end == "idx"))
            .unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    };
    damage("1");
    assert_eq!(found(&started(store).await, "pool"), 1);
    assert_eq!(generations(), ["2"]);
    // So is a folder whose process ended before its first commit, or in the middle of one.
    std::fs::remove_file(folder.path().join("2/meta.json")).unwrap();
    assert_eq!(found(&started(store).await, "pool"), 1);
    assert_eq!(generations(), ["3"]);

    // Another database has other changes under the same numbers, and a restored one fewer.
    let (other, _, author) = scene().await;
    for title in [
        "Rates of an exchange",
        "Fees of a bank",
        "Taxes of a sale",
        "Terms of a loan",
    ] {
        publish(&other, author, title, None).await;
    }
    let searching = started(&other.app.store).await;
    assert_eq!((found(&searching, "pool"), found(&searching, "exchange")), (0, 1));
    assert_eq!(generations(), ["4"]);
    let (empty, ..) = scene().await;
    assert_eq!(started(&empty.app.store).await.index().unwrap().count(), 0);
}

#[tokio::test]
async fn public_datasets_are_found_and_private_ones_are_not() {
    let (service, token, _) = scene().await;
    service
        .project(
            &token,
            "tide-gauges",
            &json!({"title": "Tide gauges", "tags": ["sea-level"]}),
        )
        .await;
    service
        .project(
            &token,
            "tide-secret",
            &json!({"title": "Tide secret", "visibility": "private"}),
        )
        .await;
    refresh(&service).await;
    let got = service.get("/search?q=sea+level", None).await;
    assert_eq!(titles(&got), ["Tide gauges"]);
    assert_eq!(got.json()["items"][0]["kind"], "dataset");
    assert_eq!(
        titles(&service.get("/search?q=tide", Some(&token)).await),
        ["Tide gauges"]
    );
    assert_eq!(titles(&service.get("/search?q=tide&kind=unit", None).await), [""; 0]);
    let archive = json!({"status": "archived"}).to_string();
    assert_eq!(
        service
            .call("PATCH", "/projects/tide-gauges", Some(&token), &archive)
            .await
            .status,
        200
    );
    // It is still read and sold.
    assert_eq!(titles(&service.get("/search?q=tide", None).await), ["Tide gauges"]);
}

#[tokio::test]
async fn a_dataset_is_dated_by_its_last_merge() {
    let (service, token, _) = scene().await;
    let key = service.agent(&token, "gauge").await;
    let day = |days: u64| Duration::from_hours(24 * days);
    let page = async |path: &str| {
        let request = http::Request::get(path).header("accept", "text/html");
        let page = service.send(request.body(axum::body::Body::empty()).unwrap()).await;
        assert_eq!(page.status, 200, "{path}");
        page.text()
    };
    service.project(&key, "tides", &json!({"title": "Tides"})).await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    service.clock.advance(day(2));
    service.project(&key, "waves", &json!({"title": "Waves"})).await;
    refresh(&service).await;
    assert_eq!(titles(&service.get("/search", None).await), ["Waves", "Tides"]);
    service.clock.advance(day(40));
    let merge = service.merged(&key, "tides", &[json!({"name": "b"})]).await;
    // A merge is an event of the feed and no change of the text. The index learns of it all the same.
    refresh(&service).await;
    assert_eq!(titles(&service.get("/search", None).await), ["Tides", "Waves"]);
    service.clock.advance(Duration::from_hours(1));
    let patch = json!({"title": "Tides", "readme": "A readme that is another one."}).to_string();
    assert_eq!(
        service
            .call("PATCH", "/projects/tides", Some(&token), &patch)
            .await
            .status,
        200
    );
    refresh(&service).await;

    let listed = service.get("/projects", None).await.json();
    let dated: Vec<_> = listed["items"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&dated[0]["slug"], &dated[1]["slug"]),
        (&json!("tides"), &json!("waves"))
    );
    assert_eq!(dated[0]["updatedAt"], json!(merge.at.to_string()));
    assert_eq!(dated[1]["updatedAt"], dated[1]["createdAt"]);
    assert_eq!(titles(&service.get("/search", None).await), ["Tides", "Waves"]);
    let fresh = service.get("/search?within=day", None).await;
    assert_eq!(titles(&fresh), ["Tides"]);
    assert_eq!(fresh.json()["items"][0]["updatedAt"], json!(merge.at.to_string()));
    for path in ["/", "/projects"] {
        let text = page(path).await;
        let (tides, waves) = (text.find("Tides").unwrap(), text.find("Waves").unwrap());
        assert!(tides < waves, "{path}: {text}");
        assert!(text.contains("not yet"), "{path}: Waves has no merge: {text}");
    }
    let map = service.get("/sitemap.xml", None).await.text();
    let merged = &merge.at.to_string()[..10];
    let entry = format!("<loc>http://sluice.test/projects/tides</loc><lastmod>{merged}</lastmod>");
    assert!(map.contains(&entry), "{map}");
}

#[tokio::test]
async fn pages_hold_every_result_once() {
    let (service, _, author) = scene().await;
    for number in 0..7 {
        publish(&service, author, &format!("Finding number {number}"), None).await;
    }
    refresh(&service).await;
    let (mut found, mut path) = (Vec::new(), "/search?q=finding&mode=keyword&limit=3".to_owned());
    loop {
        let got = service.get(&path, None).await;
        found.extend(titles(&got));
        let json = got.json();
        assert_eq!(
            (json["total"].as_u64(), json["totalIsExact"].as_bool()),
            (Some(7), Some(true))
        );
        let Some(cursor) = json["nextCursor"].as_str() else {
            break;
        };
        path = format!("/search?q=finding&mode=keyword&limit=3&cursor={cursor}");
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 7);
    let other = path.replace("mode=keyword", "mode=semantic");
    assert_eq!(service.get(&other, None).await.status, 400);
}

#[tokio::test]
async fn limits_of_the_input_are_kept_and_no_text_is_an_error() {
    let (service, _, author) = scene().await;
    publish(&service, author, "A finding", None).await;
    refresh(&service).await;
    let long = "q".repeat(200);
    for (query, status) in [
        (format!("q={long}"), 200),
        (format!("q={long}q"), 400),
        ("limit=50".to_owned(), 200),
        ("limit=51".to_owned(), 400),
        ("limit=0".to_owned(), 400),
        ("mode=best".to_owned(), 400),
        ("minScore=101".to_owned(), 400),
        ("cursor=AAAA".to_owned(), 400),
        ("unknown=1".to_owned(), 400),
        ("q=%22open+AND+(+*+%5C+title%3Ax".to_owned(), 200),
    ] {
        assert_eq!(
            service.get(&format!("/search?{query}"), None).await.status,
            status,
            "{query}"
        );
    }
}

/// The pages show what the operations answer: previews to visitors, texts as text, and nothing of what is not published.
#[tokio::test]
async fn the_pages_show_a_visitor_what_anybody_may_see() {
    let (service, _, author) = scene().await;
    let priced = publish(&service, author, "Pool <b>ran</b> out", Some(250_000)).await;
    let free = publish(&service, author, "Checkpoints of a log", Some(0)).await;
    refresh(&service).await;
    let found = service.get("/find?q=pool&mode=keyword", None).await;
    assert_eq!(found.status, 200, "{}", found.text());
    let page = found.text();
    for part in [
        format!("/units/{priced}"),
        "$0.25".to_owned(),
        "category=performance-tuning".to_owned(),
        "<mark>Pool</mark> &#60;b&#62;ran&#60;/b&#62; out".to_owned(),
    ] {
        assert!(page.contains(&part), "{part} is not in {page}");
    }
    assert!(!page.contains(&format!("/units/{free}")));
    let narrowed = service.get("/find?q=&kind=dataset&category=", None).await;
    assert!(narrowed.text().contains("Nothing found"), "{}", narrowed.text());
    assert_eq!(service.get("/find?mode=nonsense", None).await.status, 404);
    let page = service.get(&format!("/units/{priced}"), None).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(
        !page.text().contains("then 12 ms"),
        "a visitor sees the beginning of a priced text only"
    );
    assert!(!page.text().contains("<b>ran</b>"));
    let page = service.get(&format!("/units/{free}"), None).await;
    assert!(page.text().contains("then 12 ms"));
    let missing = service
        .get(&format!("/units/{}", UnitId::new(service.app.clock.now())), None)
        .await;
    assert_eq!(missing.status, 404);
}

/// The page has orders, a tag and a language beside the conditions of the operation, and leads on where nothing is found.
#[tokio::test]
async fn the_page_sorts_narrows_suggests_and_leads_to_the_board() {
    let (service, token, author) = scene().await;
    let key = service.agent(&token, "gauge").await;
    let tagged = json!({"title": "Tide levels", "tags": ["sea"]});
    service.project(&key, "tides", &tagged).await;
    service.merged(&key, "tides", &[json!({"name": "a"})]).await;
    let dear = publish(&service, author, "Tide levels of a pool", Some(250_000)).await;
    let free = publish(&service, author, "Tide levels of a log", Some(0)).await;
    refresh(&service).await;
    let page = async |path: &str| {
        let got = service.get(path, None).await;
        assert_eq!(got.status, 200, "{path}: {}", got.text());
        got.text()
    };
    let links = [
        "/projects/tides".to_owned(),
        format!("/units/{dear}"),
        format!("/units/{free}"),
    ];
    let shown = |text: &str| links.clone().map(|link| text.contains(&format!("href=\"{link}\"")));

    let cheapest = page("/find?q=tide+levels&sort=cheapest&kind=unit").await;
    assert!(
        cheapest.find(&links[2]).unwrap() < cheapest.find(&links[1]).unwrap(),
        "{cheapest}"
    );
    assert!(cheapest.contains("<mark>Tide</mark> <mark>levels</mark>"), "{cheapest}");
    assert_eq!(shown(&page("/find?tag=sea").await), [true, false, false]);
    assert_eq!(shown(&page("/find?language=en").await), [false, true, true]);
    let all = page("/find?q=tide+levels&mode=keyword").await;
    assert_eq!(shown(&all), [true; 3]);
    assert!(all.contains("2 write-ups, 1 dataset"), "{all}");
    assert!(
        all.contains("/find?q=tide+levels&#38;mode=keyword&#38;tag=sea"),
        "{all}"
    );
    for query in ["sort=best", "language=xx"] {
        assert_eq!(
            service.get(&format!("/find?{query}"), None).await.status,
            404,
            "{query}"
        );
    }
    // The operation for programs has none of these.
    for query in ["sort=cheapest", "tag=sea", "language=en"] {
        assert_eq!(
            service.get(&format!("/search?{query}"), None).await.status,
            400,
            "{query}"
        );
    }

    let nothing = page("/find?q=xyzzyx&mode=keyword").await;
    assert!(
        nothing.contains("/requests?title=xyzzyx&#38;kind=knowledge#ask"),
        "{nothing}"
    );
    let board = page("/requests?title=xyzzyx&kind=knowledge").await;
    assert!(
        board.contains("“xyzzyx”, knowledge") && board.contains("/community/requests"),
        "{board}"
    );

    let suggested = page("/find/suggest?q=tide+levels").await;
    assert!(
        suggested.starts_with("<div class=\"sug\" role=\"listbox\""),
        "{suggested}"
    );
    assert!(
        suggested.contains("data-q=\"tide levels\"") && suggested.contains("3 results"),
        "{suggested}"
    );
    assert!(suggested.contains("data-href=\"/projects/tides\"") && suggested.contains("<mark>Tide</mark>"));
    let hostile = page("/find/suggest?q=%3Cscript%3Ealert(1)%3C/script%3E").await;
    assert!(!hostile.contains("<script"), "{hostile}");
    page("/find/suggest").await;

    let list = page("/units").await;
    assert_eq!(shown(&list), [false, true, true]);
    assert!(
        list.contains("2 published") && list.contains("category=performance-tuning"),
        "{list}"
    );
    assert_eq!(service.get("/units?before=x", None).await.status, 400);
}

#[tokio::test]
async fn pages_of_the_list_of_units_follow_each_other() {
    let (service, _, author) = scene().await;
    for number in 0..23 {
        publish(&service, author, &format!("Finding number {number}"), None).await;
    }
    refresh(&service).await;
    let (mut found, mut path) = (Vec::new(), "/units".to_owned());
    loop {
        let text = service.get(&path, None).await.text();
        let units = text.split("href=\"/units/").skip(1);
        found.extend(units.map(|rest| rest[..36].to_owned()));
        let Some((_, next)) = text.split_once("href=\"/units?before=") else {
            break;
        };
        path = format!("/units?before={}", next.split('"').next().unwrap());
    }
    let count = found.len();
    found.sort();
    found.dedup();
    assert_eq!((count, found.len()), (23, 23));
}
