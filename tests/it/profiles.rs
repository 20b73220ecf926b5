//! Profiles and previews from outside: who sees what of a dataset before buying it, and that it stays the same whatever
//! happens to the files.

mod crowd;
mod figures;
mod sketches;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tests::checker::delta::tables_below;
use tests::random::Random;
use tests::server::{DEADLINE, POLL};
use tests::world::{Agent, Operator, contribute, records};
use tests::{Answer, Http, Options, World};
use types::fault::PROFILE_POINTS;

pub(crate) use self::figures::{any_record, fields};
use crate::binary;
use crate::uploads::{begin, complete, fill, lines};

/// Rows of a part whose sketch is kept, and a few more.
const MANY: u64 = 66_000;

async fn started() -> World {
    World::start_with(binary(), often).await
}

fn often(options: Options) -> Options {
    options.with("SLUICE__PROFILES__EVERY", "200ms")
}

/// Waits for the profile of a version, and returns it without its time.
async fn profile(http: &Http, slug: &str, version: u64) -> Value {
    let path = format!("/projects/{slug}/profile");
    let is_there = |answer: &Answer| answer.code() == 200 && answer.body["version"] == version;
    timeless(&http.comes_to_show(&path, is_there).await)
}

fn timeless(answer: &Answer) -> Value {
    let mut body = answer.clone().expect(200).body;
    assert!(body["madeAt"].is_string(), "{body}");
    body.as_object_mut().unwrap().remove("madeAt");
    body
}

fn column<'a>(profile: &'a Value, name: &str) -> &'a Value {
    let columns = profile["columns"].as_array().unwrap();
    columns.iter().find(|column| column["name"] == name).unwrap()
}

fn rows(answer: &Answer) -> &[Value] {
    answer.body["rows"].as_array().unwrap()
}

/// Records whose texts tell apart who wrote them, and are long.
fn texts(series: &str, count: usize) -> Vec<Value> {
    let mut random = Random::new(series.len() as u64);
    (0..count)
        .map(|sample| json!({"station": format!("{series} {sample} {}", letters(&mut random, 750)), "sample": sample}))
        .collect()
}

/// Words of letters that do not repeat.
pub(crate) fn letters(random: &mut Random, count: usize) -> String {
    let letters: Vec<char> = "abcdefghiklmnoprstuvwyzüéßøñ".chars().collect();
    let letter = |place: usize, random: &mut Random| if place % 7 == 6 { ' ' } else { *random.pick(&letters) };
    (0..count).map(|place| letter(place, random)).collect()
}

async fn paid(world: &World, changes: Value) -> String {
    let paid = json!({"access": "paid", "price": "0.10"});
    world.project_with(tests::world::merged(paid, changes)).await
}

/// Lets an operator buy the latest version of a dataset.
async fn buy(world: &World, buyer: &(Operator, Agent), slug: &str) {
    let options = world.server.options();
    options.admin(&["credits", "grant", &buyer.0.id, "--cents", "10"]);
    let path = format!("/projects/{slug}/buy");
    buyer.1.http.post(&path, &json!({})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_dataset_shows_its_figures_to_all_and_whole_rows_to_who_has_a_key() {
    let world = started().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &texts("long", 60)).await;
    let figures = profile(&world.http, &slug, 1).await;
    assert_eq!((&figures["level"], &figures["records"]), (&json!("full"), &json!(60)));
    let sample = column(&figures, "sample");
    assert_eq!(
        (&sample["min"], &sample["max"], &sample["mean"]),
        (&json!(0), &json!(59), &json!(29.5))
    );
    let (_, other) = world.newcomer().await;
    let path = format!("/projects/{slug}/preview");
    let seen = world.http.get(&path).await.expect(200);
    assert_eq!((rows(&seen).len(), &seen.body["cut"]), (20, &json!(true)));
    assert!(
        rows(&seen)
            .iter()
            .all(|row| row["station"].as_str().unwrap().chars().count() == 500)
    );
    assert!(seen.text("/next/signIn").ends_with("/signin"), "{}", seen.body);
    assert_eq!(seen.body["columns"].as_array().unwrap().len(), 6);
    for caller in [&other.http, &world.agent.http, &world.owner] {
        assert_eq!(profile(caller, &slug, 1).await, figures);
        let whole = caller.get(&path).await.expect(200);
        assert_eq!((rows(&whole).len(), &whole.body["cut"]), (20, &json!(false)));
        // The same rows, and whole.
        for (cut, row) in rows(&seen).iter().zip(rows(&whole)) {
            assert_eq!(cut["sample"], row["sample"]);
            assert!(row["station"].as_str().unwrap().chars().count() > 700);
        }
        assert!(whole.text("/next/data").contains("/data"), "{}", whole.body);
    }
    for (wanted, found) in [(0, 0), (3, 3), (100, 60)] {
        let changed = world
            .agent
            .http
            .patch(&format!("/projects/{slug}"), &json!({"previewRows": wanted}))
            .await;
        assert_eq!(changed.expect(200).body["previewRows"], wanted);
        assert_eq!(rows(&world.http.get(&path).await.expect(200)).len(), found, "{wanted}");
        assert_eq!(rows(&other.http.get(&path).await.expect(200)).len(), 20);
    }
    for refused in [json!(101), json!(-1), json!(null), json!("5"), json!(1.5)] {
        let changed = world
            .agent
            .http
            .patch(&format!("/projects/{slug}"), &json!({"previewRows": refused}))
            .await;
        assert_eq!(changed.expect(400).paths(), ["/previewRows"], "{refused}");
    }
    world.server.options().assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paid_dataset_shows_milestones_to_who_has_not_bought_it() {
    let world = started().await;
    let slug = paid(&world, json!({})).await;
    let (own, path) = (&world.agent.http, format!("/projects/{slug}"));
    assert_eq!(world.http.get(&path).await.expect(200).body["previewRows"], 5);
    let buyer = world.newcomer().await;
    let anybody = [world.http.clone(), buyer.1.http.clone()];

    // Below 100 rows there are contract and counts.
    contribute(own, &slug, &texts("a", 99)).await;
    let figures = profile(own, &slug, 1).await;
    assert_eq!(
        (&figures["level"], &column(&figures, "sample")["max"]),
        (&json!("full"), &json!(98))
    );
    for caller in &anybody {
        caller.get(&format!("{path}/profile")).await.expect(404);
        caller.get(&format!("{path}/profile?version=1")).await.expect(404);
        let seen = caller.get(&format!("{path}/preview")).await.expect(200);
        assert_eq!((&seen.body["rows"], &seen.body["records"]), (&json!([]), &json!(99)));
        assert_eq!(seen.body["columns"][0], json!({"name": "station", "type": "string"}));
        assert_eq!(
            (seen.text("/next/price"), seen.body["level"].as_str()),
            ("0.10", Some("public"))
        );
        assert!(seen.text("/next/buy").ends_with("/buy") && seen.text("/next/pay").contains("/paid/dataset"));
    }
    buy(&world, &buyer, &slug).await;
    contribute(own, &slug, &texts("b", 101)).await;
    profile(own, &slug, 2).await;
    let seen = profile(&world.http, &slug, 2).await;
    assert_eq!((&seen["level"], &seen["records"]), (&json!("public"), &json!(200)));
    let sample = column(&seen, "sample");
    for hidden in [
        "min",
        "max",
        "mean",
        "deviation",
        "quantiles",
        "negative",
        "zero",
        "nulls",
    ] {
        assert!(sample.get(hidden).is_none(), "{sample}");
    }
    assert!(column(&seen, "station").get("top").is_none(), "{seen}");
    // What was bought is whole, a later version is not.
    let first = timeless(&buyer.1.http.get(&format!("{path}/profile?version=1")).await);
    assert_eq!((&first["level"], &first["version"]), (&json!("full"), &json!(1)));
    let second = timeless(&buyer.1.http.get(&format!("{path}/profile?version=2")).await);
    assert_eq!((&second["level"], &second), (&json!("public"), &seen));
    let preview = world.http.get(&format!("{path}/preview")).await.expect(200);
    assert_eq!((rows(&preview).len(), &preview.body["cut"]), (5, &json!(true)));
    assert!(
        rows(&preview)
            .iter()
            .all(|row| row["station"].as_str().unwrap().chars().count() == 200)
    );
    let of_first = buyer.1.http.get(&format!("{path}/preview?version=1")).await.expect(200);
    assert_eq!((rows(&of_first).len(), &of_first.body["cut"]), (20, &json!(false)));
    assert!(
        of_first.text("/next/data").ends_with("/data?version=1"),
        "{}",
        of_first.body
    );

    // A version that is no milestone shows the one before, whatever the address says.
    contribute(own, &slug, &texts("c", 50)).await;
    profile(own, &slug, 3).await;
    for query in ["", "?version=2", "?version=3"] {
        assert_eq!(
            timeless(&world.http.get(&format!("{path}/profile{query}")).await),
            seen,
            "{query}"
        );
        let again = world.http.get(&format!("{path}/preview{query}")).await.expect(200);
        assert_eq!(rows(&again), rows(&preview));
    }
    world.http.get(&format!("{path}/profile?version=1")).await.expect(404);
    world.http.get(&format!("{path}/profile?version=4")).await.expect(404);
    for (wanted, found) in [(0, 0), (1, 1), (20, 10)] {
        own.patch(&path, &json!({"previewRows": wanted})).await.expect(200);
        let shown = world.http.get(&format!("{path}/preview")).await.expect(200);
        assert_eq!(rows(&shown).len(), found, "{wanted} of at most a twentieth");
        assert_eq!(shown.body["version"], 2);
    }
    assert_eq!(
        own.patch(&path, &json!({"previewRows": 21})).await.expect(400).paths(),
        ["/previewRows"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paid_dataset_whose_owner_has_not_chosen_shows_nothing() {
    let world = started().await;
    let slug = paid(&world, json!({})).await;
    let (own, path) = (&world.agent.http, format!("/projects/{slug}"));
    own.patch(&path, &json!({"previewRows": null})).await.expect(200);
    contribute(own, &slug, &records("a", 300)).await;
    profile(own, &slug, 1).await;
    world.http.get(&format!("{path}/profile")).await.expect(404);
    let seen = world.http.get(&format!("{path}/preview")).await.expect(200);
    assert_eq!((&seen.body["rows"], &seen.body["version"]), (&json!([]), &json!(1)));
    // The choice makes the newest version a milestone, without another merge.
    own.patch(&path, &json!({"previewRows": 7})).await.expect(200);
    // Its owner has it built at once by looking. Who waits gets it when the wait after the last build is over.
    profile(own, &slug, 1).await;
    assert_eq!(profile(&world.http, &slug, 1).await["level"], "public");
    assert_eq!(
        rows(&world.http.get(&format!("{path}/preview")).await.expect(200)).len(),
        7
    );
    // A second thought takes it away at once.
    own.patch(&path, &json!({"previewRows": null})).await.expect(200);
    world.http.get(&format!("{path}/profile")).await.expect(404);
    assert_eq!(
        world.http.get(&format!("{path}/preview")).await.expect(200).body["rows"],
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_dataset_is_like_a_missing_one_and_one_that_is_taken_down_is_gone() {
    let world = started().await;
    let slug = world.project_with(json!({"visibility": "private"})).await;
    contribute(&world.agent.http, &slug, &records("a", 30)).await;
    profile(&world.agent.http, &slug, 1).await;
    let (_, other) = world.newcomer().await;
    for door in ["profile", "preview"] {
        for query in ["", "?version=1", "?version=9", "?version=0"] {
            for caller in [&world.http, &other.http] {
                let hidden = caller.get(&format!("/projects/{slug}/{door}{query}")).await;
                let missing = caller.get(&format!("/projects/no-such/{door}{query}")).await;
                let renamed = String::from_utf8_lossy(&hidden.bytes).replace(&slug, "no-such");
                assert_eq!(
                    (hidden.code(), renamed.as_bytes()),
                    (missing.code(), &missing.bytes[..]),
                    "{query}"
                );
                assert_eq!(hidden.code(), 404);
                assert_eq!(hidden.header("cache-control"), missing.header("cache-control"));
            }
        }
        world.owner.get(&format!("/projects/{slug}/{door}")).await.expect(200);
    }
    // An empty dataset has neither.
    let empty = world.project().await;
    world.http.get(&format!("/projects/{empty}/profile")).await.expect(404);
    let seen = world.http.get(&format!("/projects/{empty}/preview")).await.expect(200);
    assert_eq!((&seen.body["version"], &seen.body["rows"]), (&json!(0), &json!([])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_a_credential_is_not_sent_again_until_it_changes() {
    let world = started().await;
    let slug = world.project().await;
    let own = &world.agent.http;
    contribute(own, &slug, &records("a", 50)).await;
    profile(&world.http, &slug, 1).await;
    for door in ["profile", "preview"] {
        let path = format!("/projects/{slug}/{door}");
        let first = world.http.get(&path).await.expect(200);
        let tag = first.header("etag").to_owned();
        assert_eq!((first.header("cache-control"), tag.is_empty()), ("no-cache", false));
        assert!(
            first.header("vary").contains("Authorization, Cookie"),
            "{}",
            first.header("vary")
        );
        let asked = |http: Http, headers: Vec<(&'static str, String)>| {
            let path = path.clone();
            async move {
                let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                http.send(Method::GET, &path, &headers, None).await.unwrap()
            }
        };
        let known = asked(world.http.clone(), vec![("if-none-match", tag.clone())])
            .await
            .expect(304);
        assert_eq!((known.bytes.len(), known.header("etag")), (0, tag.as_str()));
        // With a credential or a cookie the answer is of nobody else.
        let keyed = asked(own.clone(), vec![("if-none-match", tag.clone())])
            .await
            .expect(200);
        let cookie = vec![("if-none-match", tag.clone()), ("cookie", "a=b".to_owned())];
        let cookied = asked(world.http.clone(), cookie).await.expect(200);
        for answer in [&keyed, &cookied] {
            assert_eq!(
                (answer.header("cache-control"), answer.header("etag")),
                ("no-store", "")
            );
        }
    }
    let path = format!("/projects/{slug}/preview");
    let tag = world.http.get(&path).await.expect(200).header("etag").to_owned();
    own.patch(&format!("/projects/{slug}"), &json!({"previewRows": 0}))
        .await
        .expect(200);
    let headers = [("if-none-match", tag.as_str())];
    let changed = world
        .http
        .send(Method::GET, &path, &headers, None)
        .await
        .unwrap()
        .expect(200);
    assert_eq!(changed.body["rows"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_is_the_same_before_and_after_a_compaction() {
    let world = World::start_with(binary(), |options| {
        often(options).with("SLUICE__COMPACTION__FAN_IN", "2")
    })
    .await;
    // Of fewer than 100 rows there is no milestone, so a choice of the owner has the profile built anew.
    let slug = paid(&world, json!({})).await;
    let (own, path) = (&world.agent.http, format!("/projects/{slug}"));
    own.patch(&path, &json!({"previewRows": null})).await.expect(200);
    for series in 0..12 {
        contribute(own, &slug, &records(&format!("s{series}"), 8)).await;
    }
    let before = profile(own, &slug, 12).await;
    let shown = own.get(&format!("{path}/preview")).await.expect(200);
    let [table] = <[PathBuf; 1]>::try_from(tables_below(world.server.options().data())).unwrap();
    // The newest twelve versions are in fewer parts than that.
    let deadline = Instant::now() + DEADLINE;
    loop {
        let manifest = own.get(&format!("{path}/manifest?version=12")).await.expect(200);
        if manifest.body["parts"].as_array().unwrap().len() < 6 {
            break;
        }
        assert!(Instant::now() < deadline, "no compaction of {}", table.display());
        tokio::time::sleep(POLL).await;
    }
    let made = own
        .get(&format!("{path}/profile"))
        .await
        .expect(200)
        .text("/madeAt")
        .to_owned();
    own.patch(&path, &json!({"previewRows": 5})).await.expect(200);
    let is_new = |answer: &Answer| answer.code() == 200 && answer.text("/madeAt") != made;
    let after = own.comes_to_show(&format!("{path}/profile?version=12"), is_new).await;
    assert_eq!(timeless(&after), before);
    assert_eq!(own.get(&format!("{path}/preview")).await.expect(200).bytes, shown.bytes);
}

fn checked(figures: &Value, records: u64) {
    assert_eq!(
        (&figures["records"], &figures["sampled"]),
        (&json!(records), &json!(2_048))
    );
    let sample = column(figures, "sample");
    assert_eq!(
        (&sample["min"], &sample["max"], &sample["nulls"]),
        (&json!(0), &json!(MANY - 1), &json!(0))
    );
    assert_eq!(sample["distinct"]["exact"], false);
    let about = sample["distinct"]["about"].as_u64().unwrap();
    assert!((MANY * 85 / 100..=MANY * 115 / 100).contains(&about), "{about}");
    assert_eq!(column(figures, "good")["nulls"], records);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_many_ask_for_at_once_is_built_once() {
    // Nothing is built behind the merges but the first version, and an address has calls enough.
    let world = World::start_with(binary(), |options| {
        let options = options.with("SLUICE__PROFILES__EVERY", "1h");
        options.with("SLUICE__LIMITS__CALLS_PER_IP_PER_MINUTE", "2000")
    })
    .await;
    let slug = world.project().await;
    let http = &world.agent.http;
    contribute(http, &slug, &records("v1", 20)).await;
    profile(&world.http, &slug, 1).await;
    for version in 2..=14 {
        contribute(http, &slug, &records(&format!("v{version}"), 20)).await;
    }
    let path = format!("/projects/{slug}/profile?version=2");
    let answers = join_all((0..200).map(|_| world.http.get(&path))).await;
    let bodies: BTreeSet<Vec<u8>> = answers.into_iter().map(|answer| answer.expect(200).bytes).collect();
    assert_eq!(bodies.len(), 1);
    // An address has ten built in a minute, the first two among them unless they were built behind the merges.
    let mut built = 0;
    let busy = loop {
        let version = 3 + built;
        let answer = world
            .http
            .get(&format!("/projects/{slug}/profile?version={version}"))
            .await;
        if answer.code() != 200 {
            break answer.expect(429);
        }
        assert_eq!(answer.body["records"], 20 * version);
        built += 1;
    };
    assert!((8..=10).contains(&built), "{built}");
    assert_eq!(busy.error(), "profile_busy");
    assert!(busy.header("retry-after").parse::<u64>().unwrap() >= 1);
    // What is stored is answered all the same.
    world
        .http
        .get(&format!("/projects/{slug}/profile?version=3"))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_of_many_rows_is_built_behind_the_call() {
    let world = World::start_with(binary(), |options| {
        often(options).with("SLUICE__PROFILES__REQUEST_ROWS", "30")
    })
    .await;
    let slug = world.project().await;
    for version in 1..=3 {
        contribute(&world.agent.http, &slug, &records(&format!("v{version}"), 20)).await;
    }
    profile(&world.http, &slug, 3).await;
    let path = format!("/projects/{slug}/profile?version=2");
    let first = world.http.get(&path).await;
    // It may have been the newest long enough.
    if first.code() != 200 {
        assert_eq!((first.code(), first.error()), (503, "not_yet"));
        assert_eq!(first.header("retry-after"), "5");
    }
    let built = world.http.comes_to_show(&path, |answer| answer.code() == 200).await;
    assert_eq!(
        (&built.body["version"], &built.body["records"]),
        (&json!(2), &json!(40))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_part_ends_a_build_and_is_said() {
    let world = World::start_with(binary(), |options| options.with("SLUICE__PROFILES__EVERY", "1h")).await;
    let slug = world.project().await;
    let http = &world.agent.http;
    contribute(http, &slug, &records("v1", 20)).await;
    profile(&world.http, &slug, 1).await;
    contribute(http, &slug, &records("v2", 20)).await;
    let table = tables_below(world.server.options().data()).remove(0);
    let parts = fs::read_dir(&table).unwrap().map(|entry| entry.unwrap().path());
    let second = parts
        .into_iter()
        .find(|path| path.to_string_lossy().contains("part-00000000000000000002-"))
        .unwrap();
    let whole = fs::read(&second).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&second, damaged).unwrap();
    let path = format!("/projects/{slug}/profile?version=2");
    let refused = world.http.get(&path).await.expect(503);
    assert_eq!(refused.error(), "table_damaged");
    fs::write(&second, whole).unwrap();
    assert_eq!(world.http.get(&path).await.expect(200).body["records"], 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_is_killed_at_any_step_is_done_after_the_next_start() {
    for point in PROFILE_POINTS {
        let armed = World::start_with(binary(), |options| often(options).with("SLUICE_FAULT_POINT", point));
        let mut world = armed.await;
        let slug = world.project().await;
        let http = &world.agent.http;
        let bytes = lines(0..MANY);
        let upload = begin(http, &slug, &bytes, 1 << 22, "none").await;
        let tags = fill(&upload, &bytes, 1 << 22).await;
        complete(http, &slug, &upload, &tags).await.expect(201);
        let died = world.server.exits_by(Instant::now() + DEADLINE).await;
        assert!(died.is_some(), "{point} did not kill the process");
        // An hour later the lease is over.
        let world = world
            .again_with(|options| {
                let options = options.with("SLUICE_FAULT_POINT", "");
                options.with("SLUICE__CLOCK__OFFSET", "1h")
            })
            .await;
        checked(&profile(&world.http, &slug, 1).await, MANY);
        world.server.options().assert_consistent();
    }
}
