//! Clients that generators of others make from the description of the interface, with their defaults: each makes the same
//! seven calls.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::{Value, json};
use tests::World;
use tests::agents::Agents;

use crate::binary;

/// Package that uses the Rust client.
const CARGO: &str = r#"[package]
name = "flow"
version = "0.0.0"
edition = "2024"

[dependencies]
openapi = { path = "../rust" }
reqwest = { version = "0.13", default-features = false }
serde_json = "1"
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }

[workspace]
"#;

/// Runs a program in a folder and returns what it said; it must succeed.
fn run(folder: &Path, mut command: Command) -> String {
    let output = command.current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failure = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}{failure}");
    said + &failure
}

/// Puts a program of the flow where it can find the client that it uses.
fn place(name: &str, to: PathBuf) {
    let flows = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/generated");
    std::fs::copy(flows.join(name), to).unwrap();
}

/// Compiles TypeScript into `out`.
fn compile(generators: &Agents, folder: &Path, files: &[&str]) {
    let mut command = generators.node("typescript/lib/tsc.js");
    command.args(["--strict", "--skipLibCheck", "--target", "es2022"]);
    command.args(["--lib", "es2022,dom,dom.iterable", "--outDir", "out"]);
    command.args(["--module", "commonjs", "--moduleResolution", "node10"]);
    command.args(files);
    run(folder, command);
}

/// Runs a program with the address, the key of a newcomer and the name of a project; it must say what the seven calls
/// gave.
async fn flow(world: &World, folder: &Path, mut command: Command, name: &str) {
    let (_, agent) = world.newcomer().await;
    command.args([world.server.base(), agent.key.as_str(), &world.name(name)]);
    let said = run(folder, command);
    let lines = said.lines().map(serde_json::from_str::<Value>);
    let said = lines.flatten().next_back().unwrap_or_else(|| panic!("{name}: {said}"));
    let expected = json!({
        "status": "merged", "gauge": "Hook of Holland", "rows": [[1]], "parts": 1, "listed": true, "terms": "string",
    });
    assert_eq!(said, expected, "{name}");
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
    for name in ["fetch.ts", "hey.ts", "flow.py"] {
        place(name, folder.join(name));
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
    compile(&generators, folder, &["fetch.ts", "hey.ts"]);
    let script = |name: &str| {
        let mut command = generators.node_itself();
        command.arg(name);
        command
    };
    let mut python = generators.python("python");
    python.arg("flow.py");
    for (command, name) in [
        (script("out/fetch.js"), "fetch"),
        (script("out/hey.js"), "hey"),
        (python, "python"),
    ] {
        flow(&world, folder, command, name).await;
    }
}

/// What `tests/run nightly generators` asks for: it takes minutes, most of them to compile the Rust client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_generator_makes_clients_in_four_languages() {
    let Some(jar) = std::env::var_os("SLUICE_TEST_OPENAPI_GENERATOR") else {
        return;
    };
    let Some(generators) = Agents::generators() else { return };
    let world = World::start(binary()).await;
    let folder = generators.folder();
    let folder = folder.path();
    let description = world.http.get("/openapi.json").await.expect(200).body;
    std::fs::write(folder.join("openapi.json"), description.to_string()).unwrap();
    for language in ["python", "typescript-fetch", "go", "rust"] {
        let mut command = Command::new("java");
        command.arg("-jar").arg(&jar).args(["generate", "-i", "openapi.json"]);
        command.args(["-g", language, "-o", language]);
        if language == "go" {
            // Its constants are of one package, so words that several lists have collide without this.
            command.arg("--additional-properties=enumClassPrefix=true");
        }
        run(folder, command);
    }

    let mut venv = generators.python("python");
    venv.args(["-m", "venv", "venv"]);
    run(folder, venv);
    let mut install = Command::new(folder.join("venv/bin/pip"));
    install.args(["install", "--quiet", "./python"]);
    run(folder, install);
    place("openapi-generator.py", folder.join("flow.py"));
    let mut python = Command::new(folder.join("venv/bin/python"));
    python.arg("flow.py");
    flow(&world, folder, python, "python").await;

    place("openapi-generator.ts", folder.join("fetch.ts"));
    compile(&generators, folder, &["fetch.ts"]);
    let mut node = generators.node_itself();
    node.arg("out/fetch.js");
    flow(&world, folder, node, "fetch").await;

    let module = folder.join("go-flow");
    std::fs::create_dir(&module).unwrap();
    place("openapi-generator.go", module.join("main.go"));
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments);
        command
    };
    let replace = "-replace=github.com/GIT_USER_ID/GIT_REPO_ID=../go";
    let steps: [&[&str]; 3] = [&["mod", "init", "flow"], &["mod", "edit", replace], &["mod", "tidy"]];
    for step in steps {
        run(&module, go(step));
    }
    flow(&world, &module, go(&["run", "."]), "go").await;

    let package = folder.join("rust-flow");
    std::fs::create_dir_all(package.join("src")).unwrap();
    place("openapi-generator.rs", package.join("src/main.rs"));
    std::fs::write(package.join("Cargo.toml"), CARGO).unwrap();
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--"]);
    // Neither the outputs nor the lints of the workspace.
    cargo.env("CARGO_TARGET_DIR", folder.join("target"));
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    flow(&world, &package, cargo, "rust").await;
}
