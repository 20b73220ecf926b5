//! A file becomes a dataset by one command: the conversations that people have with `infer`, `create` and `push --create`.

mod formats;
mod infer;
mod projects;
mod sending;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tests::World;

use crate::binary;

/// A person at a command line, in a folder of their own.
struct Shell<'a> {
    world: &'a World,
    key: String,
    folder: PathBuf,
}

/// What a command said.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Everything that was said.
    fn all(&self) -> String {
        format!("{}{}(exit {:?})", self.out, self.err, self.code)
    }

    /// Asserts the exit code, and that these words were said.
    fn expect(self, code: i32, words: &[&str]) -> Self {
        let all = self.all();
        assert_eq!(self.code, Some(code), "{all}");
        for word in words {
            assert!(all.contains(word), "`{word}` is missing in: {all}");
        }
        self
    }
}

impl<'a> Shell<'a> {
    /// A shell with the key of the first agent.
    fn new(world: &'a World) -> Self {
        Self::with_key(world, &world.agent.key)
    }

    fn with_key(world: &'a World, key: &str) -> Self {
        let folder = world.folder().join(world.name("shell"));
        fs::create_dir(&folder).unwrap();
        Self {
            world,
            key: key.to_owned(),
            folder,
        }
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.folder.join(name);
        fs::write(&file, text).unwrap();
        file
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        self.dress(&mut command);
        command.args(arguments);
        command
    }

    fn dress(&self, command: &mut Command) {
        command
            .current_dir(&self.folder)
            .env("SLUICE_SERVER", self.world.server.base())
            .env("SLUICE_KEY", &self.key)
            .env("XDG_STATE_HOME", self.folder.join("state"))
            .env("XDG_CONFIG_HOME", self.folder.join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&self.command(arguments).output().unwrap())
    }

    /// Runs it with this standard input.
    fn piped(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Said {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A command that ends early closes the pipe.
        child.stdin.take().unwrap().write_all(input.as_ref()).ok();
        Said::of(&child.wait_with_output().unwrap())
    }

    /// Runs it at a terminal where a person types this.
    fn typed(&self, arguments: &str, keys: &str) -> Said {
        let mut command = Command::new("script");
        self.dress(&mut command);
        let line = format!("{} {arguments}", binary().display());
        command
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "dumb")
            .stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
        Said::of(&child.wait_with_output().unwrap())
    }

    /// The files below the state folder.
    fn left(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.folder.join("state/sluice/push"));
        folder
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

async fn records(world: &World, slug: &str) -> Vec<Value> {
    let page = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data?limit=100"))
        .await
        .expect(200);
    let mut records = page.body["items"].as_array().unwrap().clone();
    records.sort_by_key(|record| ["station_id", "id"].map(|name| record[name].to_string()));
    records
}

async fn is_there(world: &World, slug: &str) -> bool {
    world.agent.http.get(&format!("/projects/{slug}")).await.status == 200
}

const STATIONS: &str = "Station ID;Opened;Elevation (m)\n0017;01.05.1864;9,5\n0018;22.06.1871;120\n0019;;n/a\n";
