//! The service as a child process: started, waited for, stopped and killed.
//!
//! Invariant: every process started here is ended here, by its id; its output goes to a file beside its data.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Http;

/// How long a start, a stop or a recovery may take before a test fails.
pub const DEADLINE: Duration = Duration::from_mins(1);
/// How often a condition that only polling can see is looked at.
pub const POLL: Duration = Duration::from_millis(5);
/// How often a start is tried again because another process took the port in between.
const BIND_ATTEMPTS: usize = 5;

/// Limits that tests lift, so that only the tests of a limit meet it.
const LIFTED: [(&str, &str); 9] = [
    ("SLUICE__SERVER__CONNECTIONS_PER_ADDRESS", "0"),
    ("SLUICE__LIMITS__CALLS_PER_IP_PER_MINUTE", "100000000"),
    ("SLUICE__LIMITS__PUBLIC_CONTRIBUTIONS_PER_DAY", "100000000"),
    ("SLUICE__LIMITS__ACTIVE_PROJECTS_PER_OPERATOR", "1000000"),
    ("SLUICE__LIMITS__AGENT_REGISTRATIONS_PER_IP_PER_HOUR", "1000000"),
    ("SLUICE__LIMITS__SIGN_UPS_PER_IP_PER_HOUR", "1000000"),
    ("SLUICE__LIMITS__RESENDS_PER_IP_PER_HOUR", "1000000"),
    ("SLUICE__LIMITS__OPEN_UPLOADS", "1000000"),
    ("SLUICE__LIMITS__STORAGE_PER_OPERATOR", "1000GiB"),
];

/// How a service is started.
#[derive(Clone, Debug)]
pub struct Options {
    binary: PathBuf,
    data: PathBuf,
    role: Option<&'static str>,
    config: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

impl Options {
    /// The program `binary` on the folder `data`, with the limits that do not matter lifted.
    pub fn new(binary: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        let lifted = LIFTED.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            binary: binary.into(),
            data: data.into(),
            role: None,
            config: None,
            environment: lifted.into(),
        }
    }

    /// The same with an environment variable; a later value wins.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// The same as a share of the service: `serve --role`.
    #[must_use]
    pub const fn role(mut self, role: &'static str) -> Self {
        self.role = Some(role);
        self
    }

    /// The same with a configuration file.
    #[must_use]
    pub fn config(mut self, file: impl Into<PathBuf>) -> Self {
        self.config = Some(file.into());
        self
    }

    /// The folder of the service.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Where the service writes what it logs.
    pub fn log(&self) -> PathBuf {
        self.data.with_extension("stderr")
    }

    /// Runs a command of the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Starts a command of the program that runs until it is stopped, and returns it with the JSON that it prints first.
    pub fn begin(&self, arguments: &[&str]) -> (Running, Value) {
        let mut command = self.command(arguments);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut running = Running(child);
        let mut printed = BufReader::new(running.0.stdout.take().unwrap());
        let mut text = String::new();
        // JSON for people is of several lines.
        let first = loop {
            assert!(
                printed.read_line(&mut text).unwrap() > 0,
                "{arguments:?} printed no JSON: {text}"
            );
            if let Ok(value) = serde_json::from_str(&text) {
                break value;
            }
        };
        (running, first)
    }

    /// Runs `sluice check`: true if it finds no violation, and its output.
    pub fn check(&self) -> (bool, String) {
        let output = self.run(&["check"]);
        let printed = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
    }

    /// Fails unless `sluice check` finds that database and tables agree.
    #[track_caller]
    pub fn assert_consistent(&self) {
        let (is_sound, printed) = self.check();
        assert!(is_sound, "sluice check: {printed}");
    }

    /// Runs an administration command and reads the JSON it prints.
    pub fn admin(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["admin"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "admin {arguments:?}: {stderr}");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("admin {arguments:?} printed no JSON ({error}): {stderr}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).arg("--data").arg(&self.data);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command.env("RUST_BACKTRACE", "0");
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }
}

/// A running command; killed when dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A running service; killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    base: String,
    options: Options,
}

impl Server {
    /// Starts the service and waits until it answers; panics when it does not.
    pub async fn start(options: &Options) -> Self {
        match Self::try_start(options).await {
            Ok(server) => server,
            Err(status) => panic!("the service ended with {status}:\n{}", tail_of(&options.log())),
        }
    }

    /// Starts the service and waits until it answers, or gives the status it ended with before that.
    pub async fn try_start(options: &Options) -> Result<Self, ExitStatus> {
        for attempt in 1.. {
            let (address, mut server) = Self::spawn(options);
            match server.wait_until_ready().await {
                Ok(()) => return Ok(server),
                Err(status) => {
                    let taken = tail_of(&options.log()).contains("in use") && TcpListener::bind(&address).is_err();
                    if !taken || attempt == BIND_ATTEMPTS {
                        return Err(status);
                    }
                }
            }
        }
        unreachable!("the loop ends by returning")
    }

    fn spawn(options: &Options) -> (String, Self) {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        fs::create_dir_all(options.data()).unwrap();
        let mut serve = vec!["serve", "--listen", &address];
        serve.extend(options.role.iter().flat_map(|role| ["--role", role]));
        let log = File::options().create(true).append(true).open(options.log()).unwrap();
        let child = options
            .command(&serve)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let base = format!("http://{address}");
        let server = Self {
            child,
            base,
            options: options.clone(),
        };
        (address, server)
    }

    /// Polls `/healthz`; an error is the status of a process that ended instead.
    async fn wait_until_ready(&mut self) -> Result<(), ExitStatus> {
        let deadline = Instant::now() + DEADLINE;
        let http = self.http();
        loop {
            if let Some(status) = self.exited() {
                return Err(status);
            }
            let answer = http.send(reqwest::Method::GET, "/healthz", &[], None).await;
            if answer.is_ok_and(|answer| answer.code() == 200) {
                return Ok(());
            }
            assert!(
                Instant::now() < deadline,
                "not ready:\n{}",
                tail_of(&self.options.log())
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// `http://host:port`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that the process has held (its peak resident set), in MiB.
    pub fn peak_mib(&self) -> u32 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u32>().unwrap() >> 10
    }

    /// How the service was started.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// A caller without a credential.
    pub fn http(&self) -> Http {
        Http::new(&self.base)
    }

    /// The status the process ended with, once it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the process to end by itself; `None` when it still runs at `deadline`.
    pub async fn exits_by(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            let status = self.exited();
            if status.is_some() || Instant::now() >= deadline {
                return status;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Asks the process to stop (SIGTERM) and waits for it.
    pub async fn stop(mut self) -> ExitStatus {
        self.signal("-TERM");
        let status = self.exits_by(Instant::now() + DEADLINE).await;
        status.unwrap_or_else(|| panic!("still running after SIGTERM:\n{}", tail_of(&self.options.log())))
    }

    /// Lets the process run no more, as on a machine that hangs (SIGSTOP), until [`Self::go_on`].
    pub fn hang(&self) {
        self.signal("-STOP");
    }

    /// Lets the process run again (SIGCONT).
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success(), "kill {signal} {pid}");
    }

    /// Ends the process at once (SIGKILL).
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// The end of a log, for the message of a failing test.
pub fn tail_of(log: &Path) -> String {
    const SHOWN: usize = 4_000;
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(SHOWN)..]).into_owned()
}
