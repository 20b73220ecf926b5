//! `sluice search`, `list`, `info`, `buy` and `credits`: what a person or a script reads, and the exit codes.

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tests::World;
use tests::world::{Agent, Operator, contribute, records};

use crate::binary;

/// What a command said.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    fn expect(self, code: i32, words: &[&str]) -> Self {
        let all = format!("{}{}(exit {:?})", self.out, self.err, self.code);
        assert_eq!(self.code, Some(code), "{all}");
        for word in words {
            assert!(all.contains(word), "`{word}` is missing in: {all}");
        }
        self
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// Runs a command with the key of an agent, or with none.
fn run(world: &World, key: &str, arguments: &[&str]) -> Said {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .current_dir(world.folder())
        .env("SLUICE_SERVER", world.server.base())
        .env("XDG_CONFIG_HOME", world.folder().join("config"))
        .env("XDG_DATA_HOME", world.folder().join("data-home"))
        .env_remove("SLUICE_KEY")
        .stdin(Stdio::null());
    if !key.is_empty() {
        command.env("SLUICE_KEY", key);
    }
    let Output { status, stdout, stderr } = command.output().unwrap();
    Said {
        code: status.code(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// A paid dataset with a version, and a buyer with credits.
async fn scene() -> (World, String, Operator, Agent) {
    let world = World::start(binary()).await;
    let title = "Levels of the quay";
    let slug = world
        .project_with(json!({"access": "paid", "price": "0.10", "title": title}))
        .await;
    contribute(&world.agent.http, &slug, &records("a", 3)).await;
    let (operator, buyer) = world.newcomer().await;
    (world, slug, operator, buyer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_is_found_bought_and_read_by_commands() {
    let (world, slug, operator, buyer) = scene().await;
    let key = buyer.key.as_str();
    // What is public needs no key.
    let listed = run(&world, "", &["list", "quay"]).expect(0, &[&slug, "Levels of the quay", "$0.10", "(1 of 1)"]);
    assert!(!listed.out.contains("Utf8"), "{}", listed.out);
    let page = run(&world, "", &["list", "quay", "--json"]).expect(0, &[]).json();
    assert_eq!((&page["total"], &page["items"][0]["slug"]), (&json!(1), &json!(slug)));
    world
        .agent
        .http
        .comes_to_show("/search?q=quay", |answer| answer.body["total"] == 1)
        .await;
    run(&world, "", &["search", "levels", "quay"]).expect(0, &["dataset", &slug, "version 1, 3 records"]);
    let hits = run(&world, "", &["search", "quay", "--kind", "dataset", "--json"])
        .expect(0, &[])
        .json();
    assert_eq!(hits["items"][0]["slug"], json!(slug));
    run(&world, "", &["search", "nothinglikethis"]).expect(0, &["Nothing was found.", "/requests"]);
    let buy = format!("Next: sluice buy '{slug}'");
    run(&world, "", &["info", &slug]).expect(0, &["$0.10 a version", "columns", "sample (", &buy]);
    let told = run(&world, "", &["info", &slug, "--json"]).expect(0, &[]).json();
    assert_eq!(told["latestVersion"], 1);

    // Whoever has not paid is told how to, and nobody buys by accident.
    let buy = format!("`sluice buy '{slug}'`");
    run(&world, key, &["pull", &slug]).expect(5, &[&buy]);
    run(&world, key, &["buy", &slug]).expect(3, &["nothing was bought", "--yes", "$0.10"]);
    run(&world, key, &["buy", &slug, "--yes"]).expect(5, &["`sluice credits`", "/console/money"]);
    world
        .server
        .options()
        .admin(&["credits", "grant", &operator.id, "--cents", "100"]);
    run(&world, key, &["buy", &slug, "--yes", "--max-price", "0.05"]).expect(3, &["above `maxPrice`"]);
    run(&world, key, &["buy", &slug, "--yes", "--max-price", "cheap"]).expect(2, &["--max-price"]);
    let buy = ["buy", slug.as_str(), "--yes", "--receipt", "receipt.json"];
    run(&world, key, &buy).expect(0, &["Bought version 1 of", "$0.10 of credits", "Next: sluice pull"]);
    run(&world, key, &["buy", &slug, "--yes"]).expect(0, &["nothing was charged"]);
    let again = run(&world, key, &["buy", &slug, "--yes", "--json"])
        .expect(0, &[])
        .json();
    assert_eq!(again["charged"], false);
    let credits = run(&world, key, &["credits", "--json"]).expect(0, &[]).json();
    assert_eq!(
        (&credits["boughtMicro"], &credits["ledger"]["items"][0]["amountMicro"]),
        (&json!(900_000), &json!(-100_000))
    );
    run(&world, key, &["credits"]).expect(0, &["$0.90", "-$0.10", "/console/money"]);

    // Now it is read, and the receipt holds.
    let pulled = run(&world, key, &["pull", &slug, "--dir", "quay", "--json"])
        .expect(0, &[])
        .json();
    assert_eq!((&pulled["version"], &pulled["recordCount"]), (&json!(1), &json!(3)));
    let verified = run(&world, "", &["verify", "quay", "--json"]).expect(0, &[]).json();
    assert_eq!(
        (&verified["verified"], &verified["root"]),
        (&json!(true), &pulled["root"])
    );
    let receipt = run(&world, "", &["verify", "receipt", "receipt.json", "--json"])
        .expect(0, &[])
        .json();
    assert_eq!(
        (&receipt["verified"], &receipt["receipt"]["priceMicro"]),
        (&json!(true), &json!(100_000))
    );
    let rows = [
        "query",
        slug.as_str(),
        "SELECT sample, '2026-01-01' FROM records ORDER BY sample",
        "--json",
    ];
    assert_eq!(run(&world, key, &rows).expect(0, &[]).json()["rows"][2][0], 2);

    // An own one is no error for a script, and neither is a free one.
    run(&world, &world.agent.key, &["buy", &slug, "--yes"]).expect(0, &["is yours; nothing was bought"]);
    let free = world.project().await;
    run(&world, key, &["buy", &free, "--yes"]).expect(0, &["costs nothing with an account"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_says_a_message_once_and_ends_with_a_code_that_says_who_acts() {
    let (world, slug, ..) = scene().await;
    let key = world.agent.key.as_str();
    let refused = run(&world, key, &["query", &slug, "DROP TABLE records"]).expect(2, &["/sql"]);
    let said = refused.err.trim();
    assert_eq!(said.matches("is refused").count(), 1, "{said}");
    let table = run(
        &world,
        key,
        &["query", &slug, "SELECT count(*), '2026-01-01' FROM records"],
    )
    .expect(0, &[]);
    for type_name in ["Utf8", "Int64", "Date32", "Float64"] {
        assert!(!table.out.contains(type_name), "{}", table.out);
    }
    let absent = "019b1efd-2c32-7c1a-9d35-6a1f0c2b7e10";
    let cases: &[(i32, &[&str])] = &[
        (7, &["info", "no-such-dataset"]),
        (7, &["info", absent]),
        (7, &["buy", absent, "--yes"]),
        (7, &["buy", "no-such-dataset", "--yes"]),
        (7, &["pull", "no-such-dataset"]),
        (2, &["info", slug.as_str(), "--text"]),
        (2, &["buy", absent, "--version", "1", "--yes"]),
        (2, &["search", "x", "--limit", "0"]),
        (2, &["buy"]),
        (2, &["completions", "cmd"]),
        (2, &["list", "--server", "ftp://127.0.0.1"]),
        (5, &["credits", "--key", "km_wrong"]),
    ];
    for (code, arguments) in cases {
        run(&world, key, arguments).expect(*code, &[]);
    }
    run(&world, "", &["credits"]).expect(5, &["sluice login"]);
    // What completes the command line needs neither a service nor a folder.
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        run(&world, "", &["completions", shell]).expect(0, &["credits", "max-price"]);
    }
    let config = run(&world, "", &["config", "--show", "--json"]).expect(0, &[]).json();
    assert!(config["server"]["listen"].is_string(), "{config}");

    // The administrator's commands have the same codes.
    let options = world.server.options();
    let code = |arguments: &[&str]| options.run(arguments).status.code();
    assert_eq!(code(&["admin", "operator", "role", absent, "moderator"]), Some(7));
    assert_eq!(code(&["admin", "reports", "dismiss", "the-first"]), Some(2));
    let suspend = ["admin", "operator", "suspend", absent, "--reason", "spam"];
    assert_eq!(code(&suspend), Some(7));
    assert_eq!(code(&["admin", "reports", "dismiss", absent]), Some(7));
    assert_eq!(code(&["admin", "dead-letters", "replay", "x"]), Some(7));
    let checked = options.run(&["check", "--json"]);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((&checked["sound"], &checked["violations"]), (&json!(true), &json!([])));
}
