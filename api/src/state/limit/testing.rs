//! A real Redis for tests: on loopback and a free port, in a folder of its own, without persistence.
//!
//! Invariant: a server started here is ended here, by its process id. Without a Redis the test is skipped with a line
//! that says so, except with `CI=true`, where it fails.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "support of tests fails by panicking and says what it skipped"
)]

use std::env;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Environment variable that names the program.
const PROGRAM: &str = "SLUICE_TEST_REDIS";
/// Time limit for a start.
const DEADLINE: Duration = Duration::from_secs(20);
/// Interval between two checks of a server that starts.
const POLL: Duration = Duration::from_millis(10);
/// Attempts at a start, since another process may take the port in between.
const ATTEMPTS: usize = 5;

/// Running server, killed on drop.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl RedisServer {
    /// Starts a server and waits until it answers; `None` where there is no program and none is demanded.
    pub async fn start() -> Option<Self> {
        let Some(program) = program() else {
            assert!(
                env::var("CI").is_ok_and(|ci| ci == "true"),
                "there is no redis-server: tests/components/redis.sh gets one"
            );
            return None;
        };
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let folder = tempfile::tempdir().unwrap();
            let mut server = Self {
                child: spawn(&program, port, &folder),
                port,
                folder,
            };
            if server.answers().await {
                return Some(server);
            }
        }
        panic!("a Redis did not start in {ATTEMPTS} tries");
    }

    /// Returns the address `redis://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server, which frees its port.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server again, empty, on the same port, and waits until it answers.
    pub async fn restart(&mut self) {
        self.child = spawn(&program().unwrap(), self.port, &self.folder);
        assert!(self.answers().await, "the Redis did not start again");
    }

    /// Stops the server without ending it (SIGSTOP), like a machine that hangs.
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues a stopped server (SIGCONT).
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until the server answers. Returns false if it ended instead.
    async fn answers(&mut self) -> bool {
        let client = redis::Client::open(self.url()).unwrap();
        let pinging = async {
            loop {
                if self.child.try_wait().unwrap().is_some() {
                    return false;
                }
                if let Ok(mut connection) = client.get_multiplexed_async_connection().await
                    && redis::cmd("PING").query_async::<String>(&mut connection).await.is_ok()
                {
                    return true;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::time::timeout(DEADLINE, pinging).await.unwrap_or(false)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // An error means that the server has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns the program if it can be run.
fn program() -> Option<String> {
    let program = env::var(PROGRAM).unwrap_or_else(|_unset| "redis-server".to_owned());
    let found = Command::new(&program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: there is no `{program}`, so nothing was tried with a real Redis");
    }
    found.then_some(program)
}

fn spawn(program: &str, port: u16, folder: &TempDir) -> Child {
    let port = port.to_string();
    let arguments = [
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ];
    Command::new(program)
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
