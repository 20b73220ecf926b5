//! Months of the ledger that are archived, from outside: the command, the files, the check, a copy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::server::DEADLINE;
use tests::world::{contribute, records};
use tests::{Options, World};
use types::clock::SystemClock;
use types::{Clock as _, Timestamp};

use crate::binary;

/// Time by which the clock of the service is moved, so that the month of the first events is over.
const LATER: Duration = Duration::from_hours(45 * 24);

/// Returns the name of a month.
fn month(at: Timestamp) -> String {
    at.to_string()[..7].to_owned()
}

fn this_month() -> String {
    month(SystemClock::default().now())
}

fn later_month() -> String {
    month(SystemClock::ahead(LATER).now())
}

/// Archives what it can of the months before one. Returns the answer, and what was said of an error.
fn archive(options: &Options, before: &str) -> (Value, Option<String>) {
    let ran = options.run(&["ledger", "archive", "--before", before]);
    let answer = serde_json::from_slice(&ran.stdout).unwrap_or(Value::Null);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    (answer, (!ran.status.success()).then_some(said))
}

/// A world in which a month with purchases is over and sealed, and the buyer's caller.
async fn scene() -> (World, tests::Http) {
    let started = World::start_with(binary(), |options| options.with("SLUICE__PAY__DISPUTE_WINDOW", "1s")).await;
    let slug = started.project_with(json!({"access": "paid", "price": "0.50"})).await;
    contribute(&started.agent.http, &slug, &records("a", 5)).await;
    let (buyer, agent) = started.newcomer().await;
    let options = started.server.options();
    options.admin(&["credits", "grant", &buyer.id, "--cents", "120"]);
    let path = format!("/projects/{slug}/buy");
    agent.http.post(&path, &json!({})).await.expect(200);
    let is_payable = |answer: &tests::Answer| answer.body["payableMicro"] == json!(380_000);
    started.agent.http.comes_to_show("/earnings", is_payable).await;
    // The month is not over.
    let (answer, said) = archive(options, &later_month());
    assert_eq!(answer["archived"], json!([]));
    assert!(said.unwrap().contains("not sealed to its last day"));
    let offset = format!("{}s", LATER.as_secs());
    let world = started
        .restart_with(|options| options.with("SLUICE__CLOCK__OFFSET", offset))
        .await;
    let http = tests::Http::new(world.server.base()).with(&agent.key);
    (world, http)
}

/// Archives every month that is over, once its days are sealed.
fn archived(options: &Options) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let (answer, said) = archive(options, &later_month());
        let Some(said) = said else {
            return answer["archived"].as_array().unwrap().clone();
        };
        assert!(said.contains("not sealed") && started.elapsed() < DEADLINE, "{said}");
    }
}

/// Copies the folder of a service that runs. Returns what was said, and the options of a service on the copy.
fn copied(options: &Options, copy: &Path) -> (String, Options) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/backup.py");
    let mut command = Command::new("python3");
    let ran = command.arg(program).arg(options.data()).arg(copy).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let offset = format!("{}s", LATER.as_secs());
    let restored = Options::new(binary(), copy).with("SLUICE__CLOCK__OFFSET", offset);
    (String::from_utf8_lossy(&ran.stdout).into_owned(), restored)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("ledger")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Returns the day of a buyer's oldest movement.
async fn purchase_day(buyer: &tests::Http) -> String {
    let credits = buyer.get("/credits").await.expect(200).body;
    let oldest = credits["ledger"]["items"].as_array().unwrap().last().unwrap();
    oldest["at"].as_str().unwrap()[..10].to_owned()
}

/// Writes a day into a new file and returns it, if the command did not refuse it.
fn written_day(options: &Options, day: &str, file: &Path) -> Option<String> {
    let ran = options.run(&["ledger", "day", day, file.to_str().unwrap()]);
    ran.status.success().then(|| fs::read_to_string(file).unwrap())
}

#[tokio::test]
async fn a_month_is_archived_beside_a_running_service() {
    let (world, buyer) = scene().await;
    let options = world.server.options();
    let before = buyer.get("/credits").await.expect(200).body;
    assert_eq!(before["ledger"].get("archivedBefore"), None);
    let months = archived(options);
    assert_eq!(months.len(), 1, "{months:?}");
    let name = format!("ledger/{}.parquet", this_month());
    assert_eq!(
        (&months[0]["month"], &months[0]["file"]),
        (&json!(this_month()), &json!(name))
    );
    assert!(months[0]["movements"].as_u64().unwrap() >= 4, "{months:?}");
    options.assert_consistent();
    // The balances are as before, the journal ends, and nothing is left to archive.
    let after = buyer.get("/credits").await.expect(200).body;
    assert_eq!(
        (&after["boughtMicro"], &after["givenMicro"]),
        (&before["boughtMicro"], &before["givenMicro"])
    );
    assert_eq!(after["ledger"]["items"], json!([]));
    let ends = after["ledger"]["archivedBefore"].as_str().unwrap().to_owned();
    assert!(ends.ends_with("-01T00:00:00Z") && ends > this_month(), "{ends}");
    assert_eq!(archive(options, &later_month()), (json!({"archived": []}), None));
    let wrong = options.run(&["ledger", "archive", "--before", "2025-13"]);
    assert_eq!(wrong.status.code(), Some(2));
    // It goes on.
    options.admin(&["credits", "grant", world.operator.id.as_str(), "--cents", "5"]);
    options.assert_consistent();
    // A copy has the files and holds by itself.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let (said, restored) = copied(options, &copy);
    assert!(said.contains("1 archived months"), "{said}");
    assert_eq!(files(&copy).len(), 2);
    restored.assert_consistent();
    fs::remove_dir_all(copy.join("ledger")).unwrap();
    let (is_sound, printed) = restored.check();
    assert!(!is_sound && printed.contains(&format!("M4 {name}")), "{printed}");
}

#[tokio::test]
async fn a_file_that_is_missing_or_changed_is_named() {
    let (world, buyer) = scene().await;
    let options = world.server.options();
    let day = purchase_day(&buyer).await;
    archived(options);
    let files = files(options.data());
    assert_eq!(files.len(), 2, "{files:?}");
    let days = tempfile::tempdir().unwrap();
    let sealed = written_day(options, &day, &days.path().join("sealed")).unwrap();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let is_month = name.ends_with(".parquet");
        // The document has no movements, so a day needs only the other file.
        let no_other_day = |name: &str| {
            let written = written_day(options, &day, &days.path().join(name));
            assert!(written.is_none() || !is_month, "{name}");
        };
        let sound = fs::read(&file).unwrap();
        let named = format!("M4 ledger/{name}");
        let violates = |change: &dyn Fn()| {
            change();
            let (is_sound, printed) = options.check();
            assert!(!is_sound && printed.contains(&named), "{named}: {printed}");
        };
        violates(&|| fs::remove_file(&file).unwrap());
        no_other_day("missing");
        violates(&|| fs::write(&file, &sound[..sound.len() / 2]).unwrap());
        no_other_day("cut");
        violates(&|| fs::write(&file, b"").unwrap());
        no_other_day("empty");
        let mut flipped = sound.clone();
        let middle = sound.len() / 2;
        flipped[middle] ^= 1;
        let (is_sound, _) = {
            fs::write(&file, &flipped).unwrap();
            options.check()
        };
        // A wrong bit may be in what no reader looks at, such as an encoding's padding, and then the sizes name it.
        assert!(!is_sound, "{named}");
        let written = written_day(options, &day, &days.path().join(format!("{name}-flipped")));
        assert!(written.is_none_or(|written| written == sealed), "{named}");
        fs::write(&file, &sound).unwrap();
        options.assert_consistent();
    }
}

/// A run that ended after its file was written goes on with that file; another file in its place deletes nothing.
#[tokio::test]
async fn a_file_of_an_earlier_run_is_taken_if_it_is_the_month() {
    let (world, buyer) = scene().await;
    let options = world.server.options();
    let folder = options.data().join("ledger");
    fs::create_dir_all(&folder).unwrap();
    let foreign = folder.join(format!("{}.parquet", this_month()));
    fs::write(&foreign, b"PAR1 is no month").unwrap();
    let started = Instant::now();
    let said = loop {
        let (answer, said) = archive(options, &later_month());
        assert_eq!(answer["archived"], json!([]));
        let said = said.unwrap();
        if !said.contains("not sealed") {
            break said;
        }
        assert!(started.elapsed() < DEADLINE, "{said}");
    };
    assert!(
        said.contains("stays in the database") && said.contains("move the file away"),
        "{said}"
    );
    options.assert_consistent();
    let day = purchase_day(&buyer).await;
    let days = tempfile::tempdir().unwrap();
    let written = |name: &str| written_day(options, &day, &days.path().join(name)).unwrap();
    let of_the_database = written("database");
    assert!(of_the_database.lines().count() > 2, "{of_the_database}");
    for file in files(options.data()) {
        fs::remove_file(file).unwrap();
    }
    // This copy is as a service whose run is killed before its transaction: it has the files and the movements.
    let copies = tempfile::tempdir().unwrap();
    let (_, killed) = copied(options, &copies.path().join("killed"));
    let months = archived(options);
    assert_eq!(months.len(), 1, "{months:?}");
    assert_eq!(written("file"), of_the_database, "a day of an archived month");
    options.assert_consistent();
    let folder = killed.data().join("ledger");
    fs::create_dir_all(&folder).unwrap();
    for file in files(options.data()) {
        fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    killed.assert_consistent();
    assert_eq!(archived(&killed), months);
    killed.assert_consistent();
}

/// A clock that ran ahead over some midnights and is set back: purchases go on, and the check says what happened.
#[tokio::test]
async fn a_clock_that_was_ahead_stops_no_purchase() {
    let started = World::start_with(binary(), |options| options.with("SLUICE__PAY__DISPUTE_WINDOW", "1s")).await;
    let slug = started.project_with(json!({"access": "paid", "price": "0.50"})).await;
    contribute(&started.agent.http, &slug, &records("a", 5)).await;
    let (buyer, agent) = started.newcomer().await;
    started
        .server
        .options()
        .admin(&["credits", "grant", &buyer.id, "--cents", "120"]);
    let ahead = started
        .restart_with(|options| options.with("SLUICE__CLOCK__OFFSET", "72h"))
        .await;
    // The check has the right clock, and sees what the service with the wrong one has sealed.
    let right = ahead.server.options().clone().with("SLUICE__CLOCK__OFFSET", "0s");
    let begun = Instant::now();
    // A day is sealed ten minutes after its end.
    let today = SystemClock::default().now().minus(Duration::from_mins(10)).day();
    let opens = format!("events are of {}", Timestamp::of_day(today + 3));
    loop {
        let (is_sound, printed) = right.check();
        assert!(is_sound, "{printed}");
        if printed.contains(&opens) {
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{printed}");
    }
    let world = ahead
        .restart_with(|options| options.with("SLUICE__CLOCK__OFFSET", "0s"))
        .await;
    let http = tests::Http::new(world.server.base()).with(&agent.key);
    let path = format!("/projects/{slug}/buy");
    let bought = http.post(&path, &json!({})).await.expect(200).body;
    assert_eq!(bought["charged"], true);
    let credits = http.get("/credits").await.expect(200).body;
    let newest = &credits["ledger"]["items"][0];
    assert_eq!(newest["at"], Timestamp::of_day(today + 3).to_string(), "{newest}");
    assert_eq!(credits["boughtMicro"], 700_000);
    let (is_sound, printed) = right.check();
    assert!(is_sound && printed.contains(&opens), "{printed}");
}
