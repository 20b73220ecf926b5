//! Syncs that are counted and, where asked for, slowed down: a small library (`syncs.c`) that is built with the
//! machine's C compiler and preloaded into the bench and into every server that it starts.
//!
//! Invariant: whoever is compared runs with the same library, so a delay is paid by both sides alike.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// Names the file that the library counts in, eight bytes, as it reads it itself.
const COUNTED: &str = "SYNCS_COUNTED";
/// How much longer a sync takes, in microseconds, as the library reads it.
const MICROS: &str = "SYNCS_MICROS";

/// Runs this program again with the library, unless it runs with it already; each sync then takes `delay` longer.
pub(crate) fn preloaded(delay: Duration) {
    if std::env::var_os(COUNTED).is_some() {
        return;
    }
    // Why kept: the program that takes this one's place removes it, see `Folder`.
    let folder = TempDir::with_prefix("syncs-").unwrap().keep();
    let (source, library) = (folder.join("syncs.c"), folder.join("syncs.so"));
    fs::write(&source, include_str!("syncs.c")).unwrap();
    fs::write(folder.join("count"), [0; 8]).unwrap();
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.unwrap().success(), "cc could not build {}", source.display());
    let error = Command::new(std::env::current_exe().unwrap())
        .args(std::env::args_os().skip(1))
        .env("LD_PRELOAD", &library)
        .env(COUNTED, folder.join("count"))
        .env(MICROS, delay.as_micros().to_string())
        .exec();
    panic!("the bench could not start itself again: {error}");
}

/// The library's folder; removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The folder of the library that this program runs with.
    pub(crate) fn of_this_program() -> Self {
        let counted = std::env::var_os(COUNTED).unwrap();
        Self(PathBuf::from(counted).parent().unwrap().to_owned())
    }

    /// How many syncs there were, of this program and of the servers that it started.
    pub(crate) fn count(&self) -> u64 {
        let counted = fs::read(self.0.join("count")).unwrap();
        u64::from_ne_bytes(counted.try_into().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// The delay that the command line asks for, `--sync-delay-ms N`.
pub(crate) fn delay() -> Duration {
    let millis = crate::argument("--sync-delay-ms").map_or(0.0, |millis| millis.parse().unwrap());
    Duration::from_secs_f64(millis / 1e3)
}
