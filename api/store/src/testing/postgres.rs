//! A `PostgreSQL` server for tests.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Environment variable that names the folder of the server's programs, if they are not in the usual places.
const PROGRAMS: &str = "SLUICE_TEST_POSTGRES";
/// The user that owns the databases. It needs no password from this machine.
const OWNER: &str = "sluice";

/// Stops the server and removes its folder when the other end of its input is closed.
const WATCH: &str = r#"
read -r _
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
[ -z "$pid" ] || kill -CONT "$pid" $(pgrep -P "$pid") 2>/dev/null
"$2/pg_ctl" -D "$1/data" -m immediate -s stop 2>/dev/null
rm -rf "$1"
"#;

/// Settings of the server: those of a small production server on the loopback address.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
fsync = on
synchronous_commit = on
max_connections = 200
shared_buffers = 64MB
deadlock_timeout = 200ms
";

/// A running server with its own data. It ends with this value, or with the process.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    address: SocketAddr,
    databases: AtomicU32,
    watch: Child,
}

/// Ways to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Connections are ended and everything is written.
    Fast,
    /// The server ends as in a crash. The next start recovers from the write-ahead log.
    Immediate,
}

impl Postgres {
    /// Returns the server that the tests of this process share. Without the programs of a server it fails if `CI=true`
    /// is set, and otherwise prints that and returns `None`.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// Starts a server for a test that stops it.
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// Starts a server that accepts only TLS connections, with this certificate and its key. Both are PEM.
    pub fn start_with_tls(certificate: &str, key: &str) -> Option<Self> {
        Self::start_with(Some([certificate, key]))
    }

    fn start_with(tls: Option<[&str; 2]>) -> Option<Self> {
        let Some(programs) = programs() else {
            let reason = format!("no PostgreSQL server here: run tests/components/postgres.sh or set {PROGRAMS}");
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{reason}");
            said(&reason);
            return None;
        };
        let made = unprivileged("mktemp")
            .args(["-d", "--suffix=.sluice-postgres"])
            .output()
            .unwrap();
        let folder = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        let watch = unprivileged("sh")
            .args(["-c", WATCH, "sh"])
            .args([&folder, &programs])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            address: free_address(),
            databases: AtomicU32::new(0),
            programs,
            folder,
            watch,
        };
        server.initialise();
        if let Some([certificate, key]) = tls {
            server.encrypt(certificate, key);
        }
        server.run_again();
        Some(server)
    }

    /// Creates an empty database and returns its URL.
    pub fn fresh_database(&self) -> String {
        let name = format!("d{}", self.databases.fetch_add(1, Ordering::Relaxed));
        done(self.program("createdb").args(["--template", "template0"]).arg(&name));
        Self::url(&name, self.address)
    }

    /// Creates a database from a dump, which is SQL compressed by gzip, and returns its URL.
    pub fn database_of(&self, dump: &Path) -> String {
        let url = self.fresh_database();
        let packed = fs::File::open(dump).unwrap();
        let mut unpacking = Command::new("gzip")
            .arg("-dc")
            .stdin(packed)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let text = unpacking.stdout.take().unwrap();
        let name = url.rsplit('/').next().unwrap();
        let mut restored = self.program("psql");
        restored.args(["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", name]);
        let status = restored.stdin(text).stdout(Stdio::null()).status().unwrap();
        assert!(
            status.success() && unpacking.wait().unwrap().success(),
            "{restored:?}: {status}"
        );
        url
    }

    /// Returns the URL of a database through `address`, such as that of a proxy.
    pub fn url(database: &str, address: SocketAddr) -> String {
        format!("postgres://{OWNER}@{address}/{database}")
    }

    /// Returns the address that the server listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs a statement as the administrator, in the database `postgres`.
    pub fn administer(&self, statement: &str) {
        let arguments = ["--quiet", "--no-psqlrc", "--dbname", "postgres", "--command", statement];
        done(self.program("psql").args(arguments));
    }

    /// Stops the server. [`run_again`](Self::run_again) starts it on the same data.
    pub fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        self.control(&["-m", mode, "stop"]);
    }

    /// Starts the server on its data and waits until it accepts connections.
    pub fn run_again(&self) {
        self.control(&["-w", "-t", "60", "start"]);
    }

    /// Halts every process of the server (`SIGSTOP`): connections stay open and nothing answers.
    pub fn pause(&self) {
        // The main process is halted first, so that it starts no further ones.
        signal("STOP", &[self.process()]);
        signal("STOP", &self.children());
    }

    /// Lets the halted processes continue (`SIGCONT`).
    pub fn resume(&self) {
        signal("CONT", &self.children());
        signal("CONT", &[self.process()]);
    }

    fn initialise(&self) {
        let data = self.folder.join("data");
        let initdb = |language: &[&str]| {
            let mut initdb = unprivileged(self.programs.join("initdb"));
            initdb
                .arg("--pgdata")
                .arg(&data)
                .args(["--username", OWNER, "--auth", "trust", "--no-sync"]);
            initdb
                .args(["--encoding", "UTF8", "--locale", "C.UTF-8"])
                .args(language);
            initdb
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap()
                .success()
        };
        // A locale that orders texts differently from their bytes, if the server has one (from version 15 on).
        let initialised = initdb(&["--locale-provider", "icu", "--icu-locale", "en-US"]) || initdb(&[]);
        assert!(initialised, "initdb failed");
        let settings = format!(
            "{SETTINGS}port = {}\nunix_socket_directories = '{}'\n",
            self.address.port(),
            self.folder.display()
        );
        self.append("postgresql.conf", &settings);
        // One user needs a password. Its rule comes before the one that accepts everybody.
        let file = data.join("pg_hba.conf");
        let rules = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("host all guarded 127.0.0.1/32 scram-sha-256\n{rules}")).unwrap();
    }

    fn encrypt(&self, certificate: &str, key: &str) {
        let data = self.folder.join("data");
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            // The server accepts only a key file that its own user owns and nobody else can read.
            let mut written = unprivileged("sh");
            written
                .args(["-c", "umask 077; cat >\"$1\"", "sh"])
                .arg(data.join(name));
            let mut written = written.stdin(Stdio::piped()).spawn().unwrap();
            written.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            assert!(written.wait().unwrap().success(), "{name}");
        }
        self.append("postgresql.conf", "ssl = on\n");
        let file = data.join("pg_hba.conf");
        let rules = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("hostnossl all all all reject\n{rules}")).unwrap();
    }

    fn append(&self, file: &str, text: &str) {
        let file = self.folder.join("data").join(file);
        let before = fs::read_to_string(&file).unwrap();
        fs::write(&file, before + text).unwrap();
    }

    fn control(&self, arguments: &[&str]) {
        let mut control = unprivileged(self.programs.join("pg_ctl"));
        control
            .arg("-s")
            .arg("-D")
            .arg(self.folder.join("data"))
            .arg("-l")
            .arg(self.folder.join("log"));
        done(control.args(arguments));
    }

    /// Returns a command for a client program with the server's address.
    fn program(&self, name: &str) -> Command {
        let mut program = unprivileged(self.programs.join(name));
        let port = self.address.port().to_string();
        program.args(["--host", "127.0.0.1", "--username", OWNER, "--port", &port]);
        program
    }

    fn process(&self) -> String {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().to_owned()
    }

    fn children(&self) -> Vec<String> {
        let listed = Command::new("pgrep").args(["-P", &self.process()]).output().unwrap();
        String::from_utf8(listed.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        self.watch.wait().ok();
    }
}

/// Returns the folder of the newest server's programs.
fn programs() -> Option<PathBuf> {
    let version = |folder: &Path| folder.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    if let Some(named) = std::env::var_os(PROGRAMS) {
        return Some(PathBuf::from(named));
    }
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    installed
        .map(|entry| entry.path().join("bin"))
        .filter(|folder| folder.join("initdb").exists())
        .max_by_key(|folder| version(folder))
}

/// Returns a command that runs a program as a user other than root, because the server refuses to run as root.
fn unprivileged(program: impl AsRef<std::ffi::OsStr>) -> Command {
    static USER: OnceLock<Option<[String; 2]>> = OnceLock::new();
    let id = |arguments: &[&str]| {
        let told = Command::new("id")
            .args(arguments)
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(told.stdout).unwrap().trim().to_owned()
    };
    let user = USER.get_or_init(|| {
        let name = ["postgres", "nobody"]
            .into_iter()
            .find(|name| !id(&["-u", name]).is_empty());
        (id(&["-u"]) == "0").then(|| [id(&["-u", name.unwrap()]), id(&["-g", name.unwrap()])])
    });
    let mut command = match user {
        None => Command::new(program),
        Some([user, group]) => {
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid", user, "--regid", group, "--clear-groups", "--"])
                .arg(program);
            command
        }
    };
    // The other user may not be allowed to enter the current folder, or the home of the caller.
    command.current_dir("/").env_remove("TMPDIR").env_remove("HOME");
    command
}

fn done(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

fn signal(name: &str, processes: &[String]) {
    // The error is ignored: a server that has ended by itself needs no signal.
    Command::new("kill")
        .args(["-s", name])
        .args(processes)
        .stderr(Stdio::null())
        .status()
        .ok();
}

fn free_address() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}

#[expect(clippy::print_stderr, reason = "how a test says that it was skipped")]
fn said(reason: &str) {
    eprintln!("skipped: {reason}");
}
