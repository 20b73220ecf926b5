//! Clients that generators of others make from the description of the interface, with their defaults: each makes the same
//! seven calls.

use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};
use tests::World;
use tests::agents::Agents;

use crate::binary;

/// Runs a program in a folder and returns what it said; it must succeed.
fn run(folder: &Path, mut command: Command) -> String {
    let output = command.current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failure = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}{failure}");
    said + &failure
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_generators_make_create_contribute_and_read() {
    let Some(generators) = Agents::generators() else { return };
    let world = World::start(binary()).await;
    let folder = generators.folder();
    let folder = folder.path();
    let description = world.http.get("/openapi.json").await.expect(200).body;
    std::fs::write(folder.join("openapi.json"), description.to_string()).unwrap();
    // Programs that tidy generated code are others' and not there.
    std::fs::write(folder.join("config.yml"), "post_hooks: []\n").unwrap();
    let flows = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/generated");
    for name in ["fetch.ts", "hey.ts", "flow.py"] {
        std::fs::copy(flows.join(name), folder.join(name)).unwrap();
    }
    let node = |script: &str, arguments: &[&str]| {
        let mut command = generators.node(script);
        command.args(arguments);
        command
    };
    let types = ["openapi.json", "-o", "schema.d.ts"];
    let types = node("openapi-typescript/bin/cli.js", &types);
    let functions = ["-i", "openapi.json", "-o", "hey"];
    let functions = node("@hey-api/openapi-ts/bin/run.js", &functions);
    let mut python = generators.python("openapi-python-client");
    python.args(["generate", "--path", "openapi.json", "--output-path", "generated"]);
    python.args(["--meta", "none", "--config", "config.yml"]);
    let said = thread::scope(|threads| {
        let made = [types, functions, python].map(|command| threads.spawn(move || run(folder, command)));
        made.map(|one| one.join().unwrap())
    });
    for lost in ["Endpoint will not be generated", "Unable to"] {
        assert!(!said[2].contains(lost), "{}", said[2]);
    }
    let compile = [
        "--strict",
        "--skipLibCheck",
        "--target",
        "es2022",
        "--lib",
        "es2022,dom,dom.iterable",
    ];
    let out = [
        "--module",
        "commonjs",
        "--moduleResolution",
        "node10",
        "--outDir",
        "out",
        "fetch.ts",
        "hey.ts",
    ];
    run(
        folder,
        node("typescript/lib/tsc.js", &[&compile[..], &out[..]].concat()),
    );
    let flow = |mut command: Command, slug: &str| {
        command.args([world.server.base(), world.agent.key.as_str(), slug]);
        let said = run(folder, command);
        serde_json::from_str::<Value>(said.lines().next_back().unwrap()).unwrap_or_else(|_| panic!("{said}"))
    };
    let script = |name: &str| {
        let mut command = generators.node_itself();
        command.arg(name);
        command
    };
    let mut python = generators.python("python");
    python.arg("flow.py");
    let expected = json!({
        "status": "merged", "gauge": "Hook of Holland", "rows": [[1]], "parts": 1, "listed": true, "terms": "string",
    });
    for (command, name) in [
        (script("out/fetch.js"), "fetch"),
        (script("out/hey.js"), "hey"),
        (python, "python"),
    ] {
        assert_eq!(flow(command, &world.name(name)), expected, "{name}");
    }
}
