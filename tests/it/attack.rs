//! A stranger who holds sockets (silent, with requests that never end, with answers never read) beside honest work.
//!
//! Invariant: the service may open far fewer files than the stranger has sockets.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use tests::world::{contribute, records};
use tests::{Http, Options, World};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::{binary, configured};

/// Sockets of a usual run; `SLUICE_TEST_SOCKETS` asks for more.
const SOCKETS: u64 = 1_100;
/// Starts the service with few open files. It is no file that the test writes: a program that is open for writing, also
/// in a child of another test, cannot be started.
const LIMITED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/attack/limited.sh");
/// Hard limit of open files that it sets.
const HARD: u64 = 1_024;
/// Rounds of honest work before the attack, and during it.
const ROUNDS: usize = 15;
/// Noise of a busy machine in one round, which is no slowness.
const NOISE: Duration = Duration::from_millis(50);
/// Bytes of an answer that a slow reader has room for.
const LITTLE: u32 = 4 << 10;
/// What the sockets send in turn: nothing, half of a head, a body that does not come, and a request whose answer is large.
const SENT: [&[u8]; 4] = [
    b"",
    b"GET /projects HTTP/1.1\r\nhost: x\r\nx-more: ",
    b"POST /projects HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900000\r\n\r\n{",
    b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n",
];

/// Lets this process open so many files.
fn raise_open_file_limit(files: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    assert!(
        maximum.is_none_or(|most| most >= files),
        "the test needs {files} open files"
    );
    let current = maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

/// Returns the number of open files of a process.
fn open_files(world: &World) -> usize {
    fs::read_dir(format!("/proc/{}/fd", world.server.pid()))
        .unwrap()
        .count()
}

/// Holds one socket until the service closes it, and comes again.
async fn hold(number: u64, to: SocketAddr, again: Duration) {
    // Half of the sockets are of one address. The others have an address for every ten.
    let [.., high, low] = (number / 20).to_be_bytes();
    let from = match number % 2 {
        0 => Ipv4Addr::new(127, 0, 0, 2),
        _ => Ipv4Addr::new(127, 1, high, low),
    };
    let mut pace = tokio::time::interval(again);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(LITTLE).unwrap();
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        let Ok(mut stream) = socket.connect(to).await else {
            continue;
        };
        let sent = SENT[usize::try_from(number / 2 % 4).unwrap()];
        if stream.write_all(sent).await.is_err() {
            continue;
        }
        if sent.starts_with(b"GET /openapi") {
            // The answer is never read, and the connection stays for as long as the service lets it.
            for _ in 0..20 {
                pace.tick().await;
            }
        } else {
            stream.read_to_end(&mut Vec::new()).await.ok();
        }
    }
}

/// Contributes and reads over a connection of its own, and returns the time of that.
async fn work(world: &World, slug: &str, round: &str) -> Duration {
    let http = Http::new(world.server.base());
    let agent = world.agent.at(&http);
    let begun = Instant::now();
    let merged = contribute(&agent.http, slug, &records(round, 20)).await;
    assert_eq!(merged.text("/status"), "merged", "{}", merged.body);
    agent
        .http
        .get(&format!("/projects/{slug}/data?limit=20"))
        .await
        .expect(200);
    http.get("/readyz").await.expect(200);
    begun.elapsed()
}

/// Returns the median time of some rounds of honest work.
async fn median(world: &World, slug: &str, name: &str) -> Duration {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        times.push(work(world, slug, &format!("{name}{round}")).await);
    }
    times.sort_unstable();
    times[ROUNDS / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_work_goes_on_beside_a_stranger_with_more_sockets_than_files() {
    let sockets = configured("SLUICE_TEST_SOCKETS", SOCKETS);
    raise_open_file_limit(sockets + 500);
    let world = World::start_with(Path::new(LIMITED), |options: Options| {
        options
            .with("SLUICE_TEST_PROGRAM", binary().display())
            .with("SLUICE__SERVER__CONNECTIONS_PER_ADDRESS", 256)
    })
    .await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", world.server.pid())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(words[3], HARD.to_string(), "the soft limit is raised: {files}");
    let slug = world.project().await;
    work(&world, &slug, "first").await;
    let usual = median(&world, &slug, "before").await;

    let to: SocketAddr = world.server.base().strip_prefix("http://").unwrap().parse().unwrap();
    let again = Duration::from_millis(sockets.max(1_000));
    let mut attack = JoinSet::new();
    for number in 0..sockets {
        attack.spawn(hold(number, to, again));
    }
    // The attack is under way when every place is taken.
    let places = usize::try_from(HARD / 2).unwrap();
    let begun = Instant::now();
    while open_files(&world) < places {
        assert!(begun.elapsed() < tests::server::DEADLINE, "the places are never taken");
        tokio::time::sleep(tests::server::POLL).await;
    }
    let attacked = median(&world, &slug, "during").await;
    let open = open_files(&world);
    eprintln!("usual {usual:?}, beside {sockets} sockets {attacked:?}, {open} open files");
    // Beside other tests on the same cores time says nothing, so only the suite of its own asks for it.
    if std::env::var_os("SLUICE_TEST_SOCKETS").is_some() {
        assert!(attacked < 2 * usual + NOISE, "usual {usual:?}, attacked {attacked:?}");
    }
    assert!(open < usize::try_from(HARD).unwrap() * 3 / 4, "{open} files are open");
    attack.shutdown().await;
    assert!(world.server.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_says_that_no_more_files_can_be_opened() {
    let world = World::start(binary()).await;
    let pid = Pid::from_raw(i32::try_from(world.server.pid()).unwrap());
    let change = |limits: Rlimit| prlimit(pid, Resource::Nofile, limits).unwrap();
    // The connection of these calls is open before.
    world.http.get("/readyz").await.expect(200);
    let usual = change(Rlimit {
        current: Some(3),
        maximum: getrlimit(Resource::Nofile).maximum,
    });
    let is = |word: &'static str| move |answer: &tests::Answer| answer.text("/files") == word;
    let down = world.http.comes_to_show("/readyz", is("down")).await;
    assert_eq!(down.code(), 503);
    world.http.get("/healthz").await.expect(200);
    change(usual);
    let up = world.http.comes_to_show("/readyz", is("ok")).await;
    assert_eq!(up.code(), 200);
    let log = fs::read_to_string(world.server.options().log()).unwrap();
    assert!(
        log.contains("no more files can be opened") && log.contains("files can be opened again"),
        "{log}"
    );
}
