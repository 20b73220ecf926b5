//! Clients of others, of OAuth and of MCP, as processes that exchange lines of JSON with a test.
//!
//! Invariant: a client that is not installed skips its test with a line, and fails it in CI.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

/// Variable with the folder that `tests/components/agents.sh` prints.
const FOLDER: &str = "SLUICE_TEST_AGENTS";
/// Variable with the folder that `tests/components/wallets.sh` prints.
const WALLETS: &str = "SLUICE_TEST_WALLETS";
/// Variable with the folder that `tests/components/generators.sh` prints.
const GENERATORS: &str = "SLUICE_TEST_GENERATORS";

/// Folder of the clients.
#[derive(Clone, Debug)]
pub struct Agents(PathBuf);

impl Agents {
    /// The installed clients of OAuth and of MCP.
    pub fn installed() -> Option<Self> {
        Self::found(FOLDER, "agents")
    }

    /// The installed buyers, and the node of a chain.
    pub fn wallets() -> Option<Self> {
        Self::found(WALLETS, "wallets")
    }

    /// The installed generators of clients.
    pub fn generators() -> Option<Self> {
        Self::found(GENERATORS, "generators")
    }

    /// A folder from which modules find the packages; it is removed when it is dropped.
    pub fn folder(&self) -> tempfile::TempDir {
        tempfile::tempdir_in(&self.0).unwrap()
    }

    /// A program of the packages of Python.
    pub fn python(&self, program: &str) -> Command {
        Command::new(self.0.join("venv/bin").join(program))
    }

    /// Node.js without a script.
    pub fn node_itself(&self) -> Command {
        Command::new(self.0.join("node"))
    }

    /// Starts the node of a chain, and returns it with its address. The node ends when it is dropped.
    pub async fn chain(&self) -> (Child, String) {
        let program = self.0.join("node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil");
        let mut command = tokio::process::Command::new(program);
        command.args(["--chain-id", "84532", "--port", "0"]);
        let mut child = spawn(command);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(address) = line.strip_prefix("Listening on ") {
                let url = format!("http://{address}");
                // The node goes on writing, and would wait for a reader.
                tokio::spawn(async move { while let Ok(Some(_line)) = lines.next_line().await {} });
                return (child, url);
            }
        }
        panic!("the node ended before it listened");
    }

    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn found(folder_variable: &str, component: &str) -> Option<Self> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let cache = variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")));
        let folder = variable(folder_variable)
            .map(PathBuf::from)
            .or_else(|| cache.map(|cache| cache.join("sluice-tools").join(component)));
        let found = folder.filter(|folder| folder.join("package-lock.json").is_file());
        if found.is_none() {
            let missing = format!("there are no clients of others: tests/components/{component}.sh brings them");
            assert!(variable("CI").is_none_or(|ci| ci != "true"), "{missing}");
            eprintln!("skipped: {missing}");
        }
        found.map(Self)
    }

    /// Starts a client, which is a script of `tests/agents`, and gives it a line.
    pub async fn start(&self, script: &str, given: &Value) -> Conversation {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents");
        let is_python = Path::new(script).extension().is_some_and(|extension| extension == "py");
        let program = if is_python { "venv/bin/python" } else { "node" };
        let mut command = tokio::process::Command::new(self.0.join(program));
        if is_python {
            command.arg(source.join(script));
        } else {
            // A module finds packages from its own place, so it runs beside them.
            let copy = tempfile::tempdir_in(&self.0).unwrap();
            for name in [script, "lines.mjs", "first.mjs"] {
                std::fs::copy(source.join(name), copy.path().join(name)).unwrap();
            }
            command.arg(copy.path().join(script));
            let child = spawn(command);
            return Conversation::new(child, script, Some(copy), given).await;
        }
        Conversation::new(spawn(command), script, None, given).await
    }

    /// Runs a program of a document as it is printed: `python`, or a module in `js`.
    pub async fn run(&self, language: &str, program: &str) -> std::process::Output {
        // A module finds packages from its own place, so it runs beside them.
        let folder = tempfile::tempdir_in(&self.0).unwrap();
        let (name, runner) = match language {
            "python" => ("program.py", "venv/bin/python"),
            _ => ("program.mjs", "node"),
        };
        std::fs::write(folder.path().join(name), program).unwrap();
        tokio::process::Command::new(self.0.join(runner))
            .arg(folder.path().join(name))
            .kill_on_drop(true)
            .output()
            .await
            .unwrap()
    }

    /// The conformance suite of MCP with these arguments. It writes its results into a folder for each scenario below
    /// `folder`.
    pub fn conformance(&self, arguments: &[&str], folder: &Path) -> Command {
        let mut command = self.node("@modelcontextprotocol/conformance/dist/index.js");
        command.args(arguments).arg("--output-dir").arg(folder);
        command.current_dir(folder);
        command
    }

    /// The MCP Inspector without a window, with these arguments. It keeps its settings in `folder`.
    pub fn inspector(&self, arguments: &[&str], folder: &Path) -> Command {
        let mut command = self.node("@modelcontextprotocol/inspector/clients/launcher/build/index.js");
        command.arg("--cli").args(arguments).env("HOME", folder);
        command.current_dir(folder);
        command
    }

    /// Schemathesis with these arguments and the settings of `tests/agents/schemathesis.toml`.
    pub fn schemathesis(&self, arguments: &[&str], folder: &Path) -> Command {
        let mut command = Command::new(self.0.join("venv/bin/schemathesis"));
        let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/schemathesis.toml");
        command
            .arg("--config-file")
            .arg(settings)
            .arg("--no-color")
            .args(arguments);
        command.current_dir(folder);
        command
    }

    /// Node.js with a script of a package.
    pub fn node(&self, script: &str) -> Command {
        let mut command = Command::new(self.0.join("node"));
        command.arg(self.0.join("node_modules").join(script));
        command
    }
}

fn spawn(mut command: tokio::process::Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// A client that runs.
#[derive(Debug)]
pub struct Conversation {
    // The process ends with its last owner.
    _child: Child,
    _copy: Option<tempfile::TempDir>,
    name: String,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Conversation {
    async fn new(mut child: Child, name: &str, copy: Option<tempfile::TempDir>, given: &Value) -> Self {
        let mut conversation = Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            name: name.to_owned(),
            _copy: copy,
            _child: child,
        };
        conversation.tell(given).await;
        conversation
    }

    /// Gives the client a line.
    pub async fn tell(&mut self, line: &Value) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Waits for a line with this member, and returns the member.
    pub async fn hear(&mut self, member: &str) -> Value {
        self.hear_either(member, member).await
    }

    /// Waits for a line with one of two members, and returns the member.
    pub async fn hear_either(&mut self, one: &str, other: &str) -> Value {
        loop {
            let line = self.output.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("{} ended before it said `{other}`", self.name));
            let mut value: Value = serde_json::from_str(&line).unwrap_or_else(|_error| panic!("{}: {line}", self.name));
            for member in [one, other] {
                if let Some(found) = value.get_mut(member) {
                    return found.take();
                }
            }
        }
    }
}
