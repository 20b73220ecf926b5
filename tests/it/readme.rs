//! The `curl` lines of the README and of `deploy/sluice/API.md` work as they are written, and so do pull and verify
//! after them.
//!
//! Invariant: the test changes nothing in the lines but the address, the token and the key, which the README leaves
//! open.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::World;

use crate::binary;

const README: &str = include_str!("../../README.md");
const API: &str = include_str!("../../deploy/sluice/API.md");

/// The lines of every shell block of a document that calls `curl`.
fn curl_lines(document: &str) -> impl Iterator<Item = &str> {
    let blocks = document.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split_once("```").unwrap().0);
    blocks
        .filter(|block| block.lines().any(|line| line.starts_with("curl ")))
        .flat_map(str::lines)
}

/// The head of a script that keeps each answer in a file of its own and ends at the first that is not a success.
const HEAD: &str = "set -eu\nn=0\ncurl() { n=$((n+1)); command curl --fail-with-body \"$@\" > answer-$n || { cat answer-$n; exit 1; }; }\n";

/// The lines of both documents as a script.
fn script(base: &str, token: &str) -> String {
    let mut script = String::from(HEAD);
    for line in curl_lines(README).chain(curl_lines(API)) {
        let line = match line.split_once('=') {
            Some(("base", _)) => format!("base={base}"),
            Some(("token", _)) => format!("token={token}"),
            Some(("key", _)) => r#"key=$(sed 's/.*"key":"\([^"]*\)".*/\1/' answer-1)"#.to_owned(),
            _ => line.to_owned(),
        };
        script.push_str(&line);
        script.push('\n');
    }
    script
}

fn answer(folder: &Path, number: usize) -> Value {
    let bytes = fs::read(folder.join(format!("answer-{number}"))).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn the_curl_lines_of_the_documentation_work_as_written() {
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "curl must be there in CI");
        eprintln!("skipped: there is no curl");
        return;
    }
    let world = World::start(binary()).await;
    let folder = world.folder().join("curl");
    fs::create_dir(&folder).unwrap();
    let script = script(world.server.base(), &world.operator.token);
    let ran = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(ran.status.success(), "{said}\n{script}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 15);

    let record = json!({"gauge": "Hook of Holland", "at": "2026-11-21T06:00:00Z", "metres": 0.83});
    let [agent, project, merged, tried] = [1, 2, 3, 4].map(|number| answer(&folder, number));
    let [preview, profile, page] = [5, 6, 7].map(|number| answer(&folder, number));
    assert_eq!(
        (&agent["name"], &project["slug"]),
        (&json!("tide-gauge"), &json!("tide-levels"))
    );
    assert_eq!(tried["decision"], "reject", "{tried}");
    assert_eq!(
        (&merged["status"], &merged["mergedVersion"]),
        (&json!("merged"), &json!(1))
    );
    assert_eq!((&page["items"], &page["version"]), (&json!([record]), &json!(1)));
    assert_eq!(
        (&preview["rows"], &preview["level"]),
        (&json!([record]), &json!("full"))
    );
    assert_eq!((&profile["version"], &profile["records"]), (&json!(1), &json!(1)));
    let [export, diff, asked, manifest, keys] = [8, 9, 10, 11, 12].map(|number| answer(&folder, number));
    assert_eq!((&export, &diff["items"][0]["record"]), (&record, &record));
    assert_eq!(diff["items"][0]["contributor"], "tide-gauge");
    assert_eq!(asked["rows"], json!([["Hook of Holland", 0.83]]));
    assert_eq!(manifest["signature"]["keyId"], keys["keys"][0]["keyId"]);
    let me = answer(&folder, 13);
    assert_eq!(
        (&me["name"], &me["projects"]["active"][0]["slug"]),
        (&json!("tide-gauge"), &json!("tide-levels"))
    );

    assert_eq!(answer(&folder, 14)["previewRows"], 10);
    assert_eq!(answer(&folder, 15), json!({"items": []}));

    // FORMAT.md describes this folder, and a machine that never met the service.
    let key = agent["key"].as_str().unwrap();
    let options = world.server.options().clone();
    let options = options
        .with("SLUICE_KEY", key)
        .with("SLUICE_SERVER", world.server.base());
    let pulled = folder.join("tide-levels");
    let (pulled, keys) = (pulled.to_str().unwrap(), folder.join("answer-12"));
    let run = |home: &str, arguments: &[&str]| {
        let options = options.clone().with("XDG_DATA_HOME", folder.join(home).display());
        let ran = options.run(arguments);
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        (ran.status.success(), said)
    };
    for (home, arguments, succeeds) in [
        ("here", &["pull", "tide-levels", "--dir", pulled][..], true),
        ("here", &["verify", pulled], true),
        ("elsewhere", &["verify", pulled], false),
        ("elsewhere", &["verify", pulled, "--keys", keys.to_str().unwrap()], true),
    ] {
        let (succeeded, said) = run(home, arguments);
        assert_eq!(succeeded, succeeds, "{home}, {arguments:?}: {said}");
    }
    assert!(folder.join("here/sluice/known-keys.json").exists());
    let mut names: Vec<_> = fs::read_dir(pulled)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[..2], ["keys.json", "manifest.json"]);
    let kept: Value = serde_json::from_slice(&fs::read(Path::new(pulled).join("manifest.json")).unwrap()).unwrap();
    let told = kept["parts"][0].as_object().unwrap();
    assert!(
        !told.contains_key("url") && kept.get("urlsExpireAt").is_none(),
        "{kept}"
    );
}

#[tokio::test]
async fn the_documents_for_agents_lead_from_a_key_to_a_version() {
    let world = World::start(binary()).await;
    // Every address of the index is one of the service.
    let index = world.http.get("/llms.txt").await.expect(200);
    let index = String::from_utf8(index.bytes).unwrap();
    let base = world.server.base();
    let links: Vec<&str> = index
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap().strip_prefix(base).unwrap())
        .collect();
    assert!(links.len() >= 10, "{links:?}");
    for path in links {
        // The endpoints of tools take messages by POST.
        let expected = if path.starts_with("/mcp") { 405 } else { 200 };
        world.http.get(path).await.expect(expected);
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let tools = world.http.post("/mcp", &list).await.expect(200);
    for tool in tools.body["result"]["tools"].as_array().unwrap() {
        let line = format!("- `{}` (", tool["name"].as_str().unwrap());
        assert!(index.contains(&line), "{line}");
    }
    let guide = world.http.get("/guide/agents.md").await.expect(200);
    let guide = String::from_utf8(guide.bytes).unwrap();
    assert!(guide.contains("| Records of a contribution | 500 |"), "{guide}");

    // The skill works as it is written, with the key of an agent that has done nothing yet.
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "curl must be there in CI");
        eprintln!("skipped: there is no curl");
        return;
    }
    let skill = world.http.get("/skill.md").await.expect(200);
    let skill = String::from_utf8(skill.bytes).unwrap();
    assert!(skill.starts_with("---\nname: sluice\ndescription: "), "{skill}");
    // Two agents copy it, and the first once more after a lost answer.
    let (first, second) = (world.newcomer().await.1, world.newcomer().await.1);
    let mut slugs = Vec::new();
    for agent in [&first, &second, &first] {
        let [_found, made, tried, merged, asked, manifest] = copied(&skill, &agent.key);
        assert!(made["slug"].is_string(), "{made}");
        assert_eq!(
            (&merged["status"], &merged["project"]),
            (&json!("merged"), &made["slug"]),
            "{merged}"
        );
        // What the first contributed is a duplicate the second time.
        let is_again = slugs.contains(&made["slug"]);
        assert_eq!(tried["decision"], if is_again { "reject" } else { "merge" }, "{tried}");
        assert_eq!(asked["rows"], json!([["Hook of Holland", 0.83]]));
        assert_eq!(manifest["version"], 1);
        slugs.push(made["slug"].clone());
    }
    assert!(slugs[0] != slugs[1] && slugs[0] == slugs[2], "{slugs:?}");
}

/// Runs the lines of the skill as they are printed, with a key, and returns the answers that they print.
fn copied(skill: &str, key: &str) -> [Value; 6] {
    let blocks = skill.split("```sh\n").skip(1);
    let lines: String = blocks.map(|block| block.split_once("```").unwrap().0).collect();
    let ran = Command::new("bash")
        .args(["-c", &lines.replace("km_…", key)])
        .output()
        .unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&printed)
        .into_iter()
        .map(|answer| answer.unwrap_or_else(|error| panic!("{error}: {printed}")))
        .collect();
    answers.try_into().unwrap_or_else(|_| panic!("{printed}"))
}
