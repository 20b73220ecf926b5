//! A real broker: one node of Apache Kafka (`KRaft`, controller and broker in one process) on free ports.
//!
//! Its files come from `tests/components/kafka.sh`. Started on loopback in a directory of its own, ready when it
//! answers, stopped by its process id. A warden (a shell that waits for the end of its input) kills it and removes the
//! directory when the test that started it ends, however it ends.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use super::Proxy;
use crate::kafka::KafkaOptions;

/// The longest that a start may take, on a machine that does much else.
const START: Duration = Duration::from_mins(2);
/// The time limit of one request to a broker that is starting.
const QUESTION: Duration = Duration::from_millis(500);
/// The identity of the cluster; any will do.
const CLUSTER: &str = "MkU3OEVBNTcwNTJENDM2Qk";
/// Small, and quick to start rather than quick.
const JAVA: [&str; 4] = [
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
];
/// Kills the process whose id it received last, and removes the directory.
const WARDEN: &str = r#"while read -r pid; do last=$pid; done
[ "${last:-none}" = none ] || kill -9 "$last" 2>/dev/null
rm -rf "$1""#;

/// A broker that runs, or is stopped and can be started again on the same data.
#[derive(Debug)]
pub struct Broker {
    libraries: PathBuf,
    directory: PathBuf,
    direct: SocketAddr,
    proxy: Proxy,
    process: Mutex<Option<Child>>,
    warden: Child,
}

impl Broker {
    /// Where the files of Kafka are: `SLUICE_TEST_KAFKA`, or where `tests/components/kafka.sh` puts them. `None` where
    /// they are not; with `CI=true` that is an error.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    pub fn libraries() -> Result<Option<PathBuf>, String> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")));
        let libraries = variable("SLUICE_TEST_KAFKA")
            .map(PathBuf::from)
            .or_else(|| cache.map(|cache| cache.join("sluice-tools/kafka/libs")));
        let found = libraries.filter(|libraries| libraries.is_dir());
        let missing = "Apache Kafka is not on this machine; tests/components/kafka.sh fetches it";
        match found {
            None if variable("CI").is_some_and(|ci| ci == "true") => Err(missing.to_owned()),
            None => {
                eprintln!("skipped: {missing}");
                Ok(None)
            }
            found => Ok(found),
        }
    }

    /// Starts a broker from the files in `libraries` and waits until it answers. Needs a tokio runtime that lives as
    /// long as the broker is reached through its [proxy](Self::proxy).
    ///
    /// # Errors
    /// What went wrong, with the end of what the broker said.
    pub async fn start(libraries: PathBuf) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("sluice-kafka-").tempdir()?.keep();
        let warden = Command::new("sh")
            .args(["-c", WARDEN, "warden"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let [direct, proxied, controller] = free_ports()?;
        let broker = Self {
            libraries,
            directory,
            direct,
            proxy: Proxy::start(proxied).await?,
            process: Mutex::new(None),
            warden,
        };
        std::fs::write(broker.settings(), broker.properties(proxied, controller))?;
        std::fs::write(broker.directory.join("log4j2.properties"), LOG4J)?;
        tokio::task::block_in_place(|| {
            let formatted = broker
                .java()
                .args([
                    "kafka.tools.StorageTool",
                    "format",
                    "--ignore-formatted",
                    "-t",
                    CLUSTER,
                    "-c",
                ])
                .arg(broker.settings())
                .stdout(broker.output()?)
                .stderr(broker.output()?)
                .status()?;
            if !formatted.success() {
                return Err(broker.failed("its storage could not be formatted"));
            }
            broker.resume_after_kill()
        })?;
        Ok(broker)
    }

    /// `host:port` of the broker itself.
    pub fn address(&self) -> String {
        self.direct.to_string()
    }

    /// `host:port` of the broker through its proxy: who connects there is told no other address.
    pub fn proxied(&self) -> String {
        self.proxy.address().to_string()
    }

    /// What stands before [`Self::proxied`].
    pub const fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Options for a test: this broker, names that begin with `prefix`, one copy, limits of seconds.
    pub fn options(&self, prefix: &str) -> KafkaOptions {
        KafkaOptions {
            prefix: format!("{prefix}."),
            partitions: 4,
            replication: 1,
            min_in_sync: 1,
            session: Duration::from_secs(2),
            patience: Duration::from_mins(1),
            ..KafkaOptions::new(&self.address())
        }
    }

    /// SIGKILL; returns when it is dead.
    ///
    /// # Errors
    /// Those of the system.
    pub fn kill(&self) -> io::Result<()> {
        let mut process = self.process();
        if let Some(mut child) = process.take() {
            child.kill()?;
            child.wait()?;
            self.tell("none")?;
        }
        Ok(())
    }

    /// Starts it again on the same data and ports, and waits until it answers. Blocks.
    ///
    /// # Errors
    /// What went wrong, with the end of what the broker said.
    pub fn resume_after_kill(&self) -> io::Result<()> {
        let child = self
            .java()
            .arg("kafka.Kafka")
            .arg(self.settings())
            .stdout(self.output()?)
            .stderr(self.output()?)
            .spawn()?;
        self.tell(&child.id().to_string())?;
        *self.process() = Some(child);
        self.wait()
    }

    /// SIGSTOP: it keeps its connections and does nothing.
    ///
    /// # Errors
    /// Those of the system.
    pub fn pause(&self) -> io::Result<()> {
        self.signal("-STOP")
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// Those of the system.
    pub fn unpause(&self) -> io::Result<()> {
        self.signal("-CONT")
    }

    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock()
    }

    fn signal(&self, signal: &str) -> io::Result<()> {
        let Some(id) = self.process().as_ref().map(Child::id) else {
            return Err(io::Error::other("the broker does not run"));
        };
        let sent = Command::new("kill").args([signal, &id.to_string()]).status()?;
        if sent.success() {
            Ok(())
        } else {
            Err(io::Error::other("the broker could not be signalled"))
        }
    }

    fn tell(&self, pid: &str) -> io::Result<()> {
        match &self.warden.stdin {
            Some(input) => writeln!(&mut &*input, "{pid}"),
            None => Ok(()),
        }
    }

    fn settings(&self) -> PathBuf {
        self.directory.join("server.properties")
    }

    fn output(&self) -> io::Result<File> {
        let path = self.directory.join("output");
        File::options().create(true).append(true).open(path)
    }

    fn java(&self) -> Command {
        let mut command = Command::new("java");
        command
            .args(JAVA)
            .arg(format!(
                "-Dlog4j2.configurationFile={}",
                self.directory.join("log4j2.properties").display()
            ))
            .arg("-cp")
            .arg(self.libraries.join("*"))
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        command
    }

    fn properties(&self, proxied: SocketAddr, controller: SocketAddr) -> String {
        let (direct, proxy, data) = (self.direct, self.proxy.address(), self.directory.join("data"));
        format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             controller.quorum.voters=1@{controller}\n\
             listeners=DIRECT://{direct},PROXIED://{proxied},CONTROLLER://{controller}\n\
             advertised.listeners=DIRECT://{direct},PROXIED://{proxy}\n\
             listener.security.protocol.map=DIRECT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             inter.broker.listener.name=DIRECT\n\
             controller.listener.names=CONTROLLER\n\
             log.dirs={data}\n\
             auto.create.topics.enable=false\n\
             offsets.topic.num.partitions=4\n\
             offsets.topic.replication.factor=1\n\
             transaction.state.log.num.partitions=1\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\n\
             group.min.session.timeout.ms=100\n\
             log.cleaner.enable=false\n\
             log.retention.check.interval.ms=1000\n\
             file.delete.delay.ms=0\n",
            data = data.display()
        )
    }

    /// Asks until it answers.
    fn wait(&self) -> io::Result<()> {
        let client: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.address())
            .set("reconnect.backoff.max.ms", "100")
            .set("log_level", "0")
            .create()
            .map_err(io::Error::other)?;
        let begun = Instant::now();
        loop {
            // A question waits by itself until the broker takes connections.
            let asked = client.fetch_metadata(None, QUESTION);
            if asked.is_ok_and(|metadata| !metadata.brokers().is_empty()) {
                return Ok(());
            }
            let ended = self.process().as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = ended {
                return Err(self.failed(&format!("it ended ({status})")));
            }
            if begun.elapsed() > START {
                return Err(self.failed("it does not answer"));
            }
        }
    }

    fn failed(&self, what: &str) -> io::Error {
        let said = std::fs::read_to_string(self.directory.join("output")).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let end = lines[lines.len().saturating_sub(20)..].join("\n");
        io::Error::other(format!("the broker did not start: {what}\n{end}"))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            tracing::warn!(%error, "the broker could not be stopped");
        }
        drop(self.warden.stdin.take());
        if let Err(error) = self.warden.wait() {
            tracing::warn!(%error, "the broker's directory may be left");
        }
    }
}

/// Ports that nobody listens on.
fn free_ports<const N: usize>() -> io::Result<[SocketAddr; N]> {
    // Together, so that they differ.
    let listeners = [(); N].map(|()| TcpListener::bind(("127.0.0.1", 0)));
    let mut ports = [SocketAddr::from(([127, 0, 0, 1], 0)); N];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?;
    }
    Ok(ports)
}

const LOG4J: &str = "rootLogger.level=warn\n\
    rootLogger.appenderRef.out.ref=out\n\
    appender.out.type=Console\n\
    appender.out.name=out\n\
    appender.out.layout.type=PatternLayout\n\
    appender.out.layout.pattern=%d %p %c %m%n\n";
