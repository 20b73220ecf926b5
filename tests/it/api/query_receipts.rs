//! Receipts of queries: signed by the service, checked and repeated by whoever has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proof::query_receipt::{AnswerHash, BuildId};
use proof::{Key, Keys, KeysDocument, QueryReceipt, SignedStatement, SigningKey, VerifiedManifest, VerifiedStatement};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::World;
use tests::world::{contribute, records};

use super::world;

/// A statement that gives one answer, and its time.
const COUNTED: &str = "SELECT station, count(*) AS n, max(value) AS top, now() AS asked FROM records WHERE sample > 1 \
                       GROUP BY station ORDER BY station";

/// A machine that has pulled a version: its folder, and what it knows of services.
struct Machine {
    home: TempDir,
}

/// What `sluice verify receipt` said.
#[derive(Debug)]
struct Verdict {
    code: i32,
    said: String,
}

impl Machine {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: &Value) -> PathBuf {
        fs::write(self.at(name), text.to_string()).unwrap();
        self.at(name)
    }

    fn run(&self, world: Option<&World>, arguments: &[&str]) -> Verdict {
        let mut command = Command::new(crate::binary());
        command.args(arguments).env("SLUICE_KNOWN_KEYS", self.at("known.json"));
        if let Some(world) = world {
            command.env("SLUICE_KEY", &world.agent.key);
            command.env("SLUICE_SERVER", world.server.base());
        }
        let ran = command.output().unwrap();
        Verdict {
            code: ran.status.code().unwrap(),
            said: String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned(),
        }
    }

    /// Pulls a version into the folder `name`.
    fn pull(&self, world: &World, slug: &str, version: u64, name: &str) -> PathBuf {
        let (version, folder) = (version.to_string(), self.at(name));
        let arguments = ["pull", slug, "--version", &version, "--dir", folder.to_str().unwrap()];
        let pulled = self.run(Some(world), &arguments);
        assert_eq!(pulled.code, 0, "{}", pulled.said);
        folder
    }

    /// Verifies a receipt, with options.
    fn verify(&self, receipt: &Path, options: &[(&str, &Path)]) -> Verdict {
        let mut arguments = vec!["verify", "receipt", receipt.to_str().unwrap()];
        for (name, path) in options {
            arguments.extend([*name, path.to_str().unwrap()]);
        }
        self.run(None, &arguments)
    }
}

impl Verdict {
    /// Asserts the exit code, and the words with which the lines begin.
    #[track_caller]
    fn expect(&self, code: i32, words: &[&str]) {
        let begins: Vec<_> = self.said.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!((self.code, &begins[..]), (code, words), "{}", self.said);
    }

    /// Asserts that the receipt was refused with a message.
    #[track_caller]
    fn expect_refused(&self, code: i32, message: &str) {
        assert!(self.code == code && self.said.contains(message), "{self:?}");
        assert!(!self.said.contains("equal"), "{self:?}");
    }
}

async fn ask(world: &World, slug: &str, sql: &str, version: u64) -> Value {
    let body = json!({"sql": sql, "version": version, "receipt": true});
    let path = format!("/projects/{slug}/query");
    world.agent.http.post(&path, &body).await.expect(200).body
}

/// A world with a dataset of three versions, and a machine that pulled the second.
async fn scene() -> (World, String, Machine, PathBuf) {
    let world = world().await;
    let slug = world.project().await;
    for series in ["a", "b", "c"] {
        contribute(&world.agent.http, &slug, &records(series, 40)).await;
    }
    let machine = Machine::new();
    let folder = machine.pull(&world, &slug, 2, "pulled");
    (world, slug, machine, folder)
}

#[tokio::test]
async fn a_receipt_is_checked_offline_and_its_statement_gives_the_answer_again() {
    let (world, slug, machine, folder) = scene().await;
    for (sql, compared) in [
        (COUNTED, "equal"),
        (
            "SELECT station, sample, value, at, good FROM records ORDER BY 1, 2, 3, 4, 5",
            "equal",
        ),
        ("SELECT count(*) AS n FROM records", "equal"),
        ("SELECT station FROM records", "not compared"),
        ("SELECT avg(value) AS mean FROM records", "not compared"),
        ("SELECT approx_distinct(station) AS n FROM records", "not compared"),
        ("SELECT sin(max(value)) AS s FROM records", "not compared"),
    ] {
        let answer = ask(&world, &slug, sql, 2).await;
        let receipt = machine.write("receipt.json", &answer["receipt"]);
        let whole = machine.write("answer.json", &answer);
        machine.verify(&receipt, &[]).expect(0, &["signed"]);
        machine
            .verify(&receipt, &[("--answer", &whole)])
            .expect(0, &["signed", "equal"]);
        let options = [("--answer", whole.as_path()), ("--data", &folder)];
        machine
            .verify(&receipt, &options)
            .expect(0, &["signed", "equal", compared]);
        let said = machine.verify(&receipt, &[("--data", &folder)]).said;
        for why in answer["receipt"]["why"].as_array().unwrap() {
            assert!(said.contains(why.as_str().unwrap()), "{sql}: {said}");
        }
    }
    // An answer that was changed is another one.
    let answer = ask(&world, &slug, COUNTED, 2).await;
    let receipt = machine.write("receipt.json", &answer["receipt"]);
    let mut changed = answer.clone();
    changed["rows"][0][1] = json!(37);
    let changed = machine.write("answer.json", &changed);
    machine
        .verify(&receipt, &[("--answer", &changed)])
        .expect(1, &["signed", "different"]);
    // A receipt that is shown again, later and elsewhere, says the same: it is of nobody and of its time.
    let again = ask(&world, &slug, COUNTED, 2).await;
    assert_ne!(again["receipt"]["now"], answer["receipt"]["now"]);
    let text = answer["receipt"].to_string();
    assert!(!text.contains(&world.agent.key) && !text.contains("agent") && !text.contains("operator"));
    let elsewhere = Machine::new();
    elsewhere.pull(&world, &slug, 3, "pulled");
    elsewhere.verify(&receipt, &[]).expect(0, &["signed"]);
}

#[tokio::test]
async fn what_is_no_receipt_of_a_known_service_is_refused() {
    let (world, slug, machine, folder) = scene().await;
    let answer = ask(&world, &slug, COUNTED, 2).await;
    let sound = &answer["receipt"];
    let receipt = machine.write("receipt.json", sound);
    for (member, value) in [
        ("sql", json!("SELECT 1")),
        ("answer", json!("00".repeat(32))),
        ("version", json!(3)),
        ("now", json!("2026-01-01T00:00:00Z")),
        ("note", json!("more")),
    ] {
        let mut forged = sound.clone();
        forged[member] = value;
        let forged = machine.write("forged.json", &forged);
        machine.verify(&forged, &[]).expect_refused(1, "is not valid");
    }
    let text = sound.to_string();
    let cut = machine.at("cut.json");
    for end in [0, 1, text.len() / 2, text.len() - 1] {
        fs::write(&cut, &text[..end]).unwrap();
        machine.verify(&cut, &[]).expect_refused(1, "is not a receipt");
    }
    let mut other = sound.clone();
    other["format"] = json!("sluice-query-2");
    let other = machine.write("other.json", &other);
    machine.verify(&other, &[]).expect_refused(1, "does not know");
    machine
        .verify(&machine.at("nothing"), &[])
        .expect_refused(1, "could not be read");
    // What the command line gets wrong is its caller's matter.
    let later = machine.pull(&world, &slug, 3, "later");
    machine
        .verify(&receipt, &[("--data", &later)])
        .expect(2, &["signed", "sluice"]);
    assert_eq!(machine.run(None, &["verify", "receipt"]).code, 2);
    // A part that was changed proves nothing.
    let parts = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let part = parts
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "parquet"));
    let part = part.unwrap();
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&part, bytes).unwrap();
    machine
        .verify(&receipt, &[("--data", &folder)])
        .expect_refused(1, "is not the signed file");
    // A machine that never met the service asks for its keys.
    let stranger = Machine::new();
    stranger.verify(&receipt, &[]).expect_refused(1, "--keys FILE");
    let keys = world.http.get("/.well-known/service-keys").await.expect(200).body;
    let keys = stranger.write("keys.json", &keys);
    stranger.verify(&receipt, &[("--keys", &keys)]).expect(0, &["signed"]);
}

#[tokio::test]
async fn a_receipt_outlives_a_rotation_and_ends_with_a_revocation() {
    let (world, slug, machine, folder) = scene().await;
    let answer = ask(&world, &slug, COUNTED, 2).await;
    let receipt = machine.write("receipt.json", &answer["receipt"]);
    let signer = answer["receipt"]["signature"]["keyId"].as_str().unwrap();
    let run = |arguments: &[&str]| {
        let ran = world.server.options().run(arguments);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    let shown = async || {
        let keys = world.http.get("/.well-known/service-keys").await.expect(200).body;
        machine.write("keys.json", &keys)
    };
    run(&["keys", "rotate"]);
    let keys = shown().await;
    let options = [("--keys", keys.as_path()), ("--data", &folder)];
    machine.verify(&receipt, &options).expect(0, &["signed", "equal"]);
    let later = ask(&world, &slug, COUNTED, 2).await;
    assert_ne!(later["receipt"]["signature"]["keyId"], signer);
    let later = machine.write("later.json", &later["receipt"]);
    machine.verify(&later, &[("--keys", &keys)]).expect(0, &["signed"]);
    // Without the new keys, the signer is nobody.
    machine.verify(&later, &[]).expect_refused(1, "does not know a service");
    run(&["keys", "revoke", signer, "--reason", "left on a train"]);
    let keys = shown().await;
    machine
        .verify(&receipt, &[("--keys", &keys)])
        .expect_refused(1, "left on a train");
    machine.verify(&later, &[("--keys", &keys)]).expect(0, &["signed"]);
}

/// A service that signs whatever it is told, over the records of another.
struct Liar {
    secret: SigningKey,
    key: Key,
    sound: QueryReceipt,
}

impl Liar {
    /// Signs a folder as its own, and takes the receipt of the true service for a pattern.
    fn of(folder: &Path, answer: &Value) -> Self {
        let text = |name: &str| fs::read(folder.join(name)).unwrap();
        let keys = Keys::parse(&text("keys.json")).unwrap();
        let manifest = VerifiedManifest::parse(&text("manifest.json"), &keys).unwrap();
        let manifest = manifest.manifest().clone();
        let receipt = answer["receipt"].to_string();
        let receipt = VerifiedStatement::<QueryReceipt>::parse(receipt.as_bytes(), &keys).unwrap();
        let secret = SigningKey::generate().unwrap();
        let key = Key::new(secret.public_key(), manifest.created_at, None);
        let document = KeysDocument::sign(1, manifest.issued_at, vec![key.clone()], &secret).unwrap();
        let signed = manifest.sign(&secret, &key).unwrap();
        fs::write(folder.join("keys.json"), serde_json::to_string(&document).unwrap()).unwrap();
        fs::write(folder.join("manifest.json"), serde_json::to_string(&signed).unwrap()).unwrap();
        Self {
            secret,
            key,
            sound: receipt.statement().clone(),
        }
    }

    fn signs(&self, receipt: QueryReceipt) -> Value {
        let signed = SignedStatement::sign(receipt, &self.secret, &self.key).unwrap();
        serde_json::to_value(signed).unwrap()
    }

    /// Statements about the answer, each with the exit code and the first word of what is said of it.
    fn statements(&self, answer: &Value) -> Vec<(QueryReceipt, i32, &'static str)> {
        let sound = self.sound.clone();
        let another = AnswerHash::from_bytes([7; 32]);
        let first = RawValue::from_string(answer["rows"][0].to_string()).unwrap();
        let fewer = AnswerHash::of(&answer["columns"], [&*first], false).unwrap();
        vec![
            (sound.clone(), 0, "equal"),
            (
                QueryReceipt {
                    answer: another,
                    ..sound.clone()
                },
                1,
                "different",
            ),
            // An answer that lacks rows, and one of which only the first rows are shown.
            (
                QueryReceipt {
                    answer: fewer,
                    row_count: 1,
                    ..sound.clone()
                },
                1,
                "different",
            ),
            (
                QueryReceipt {
                    answer: fewer,
                    row_count: 1,
                    next_offset: Some(1),
                    ..sound.clone()
                },
                0,
                "equal",
            ),
            (
                QueryReceipt {
                    sql: COUNTED.replace("sample > 1", "sample > 2"),
                    ..sound.clone()
                },
                1,
                "different",
            ),
            (
                QueryReceipt {
                    sql: "SELECT nothing FROM records".to_owned(),
                    ..sound.clone()
                },
                1,
                "different",
            ),
            (
                QueryReceipt {
                    now: sound.issued_at.next_day(),
                    ..sound.clone()
                },
                1,
                "different",
            ),
            (
                QueryReceipt {
                    limit: 1,
                    ..sound.clone()
                },
                1,
                "different",
            ),
            // Another program may answer otherwise.
            (
                QueryReceipt {
                    build: BuildId::of_sha256(&[9; 32]),
                    ..sound.clone()
                },
                0,
                "equal",
            ),
            (
                QueryReceipt {
                    build: BuildId::of_sha256(&[9; 32]),
                    answer: another,
                    ..sound.clone()
                },
                0,
                "not compared",
            ),
            (
                QueryReceipt {
                    reproducible: false,
                    why: vec!["order".to_owned()],
                    ..sound
                },
                0,
                "not compared",
            ),
        ]
    }
}

#[tokio::test]
async fn a_service_that_signs_another_answer_is_caught() {
    let (world, slug, machine, folder) = scene().await;
    let answer = ask(&world, &slug, COUNTED, 2).await;
    let liar = Liar::of(&folder, &answer);
    for (receipt, code, said) in liar.statements(&answer) {
        let shown = format!("{receipt:?}");
        let file = machine.write("receipt.json", &liar.signs(receipt));
        let keys = folder.join("keys.json");
        let verdict = machine.verify(&file, &[("--keys", &keys), ("--data", &folder)]);
        assert_eq!(verdict.code, code, "{shown}: {}", verdict.said);
        let last = verdict.said.lines().last().unwrap();
        assert!(last.starts_with(said), "{shown}: {}", verdict.said);
    }
}
