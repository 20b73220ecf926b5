//! Chromium or Firefox as a person's window: opened, clicked, typed into and asked for its state.
//!
//! Invariant: every browser started here is ended here. A test that fails leaves a picture, the text and the complaints
//! of every page in its folder.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::BASE64;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Names the folder that `tests/components/browser.sh` prints.
const FOLDER: &str = "SLUICE_TEST_BROWSER";
/// Names the browser, `chromium` or `firefox`; the first where it is missing or empty.
const NAME: &str = "SLUICE_TEST_BROWSER_NAME";
/// Drives the browser.
const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/browser/driver.mjs");

/// A running browser; it ends with this value and with the process.
#[derive(Debug)]
pub struct Browser(Arc<Driver>);

#[derive(Debug)]
struct Driver {
    child: Mutex<Child>,
    pipes: Mutex<Pipes>,
    artefacts: PathBuf,
}

#[derive(Debug)]
struct Pipes {
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

#[derive(Debug, Deserialize)]
struct Reply {
    id: u64,
    #[serde(default)]
    value: Value,
    error: Option<String>,
}

impl Browser {
    /// Starts one whose artefacts go to the folder `artefacts`. `None` where there is no browser, which fails with
    /// `CI=true` and is said otherwise.
    pub fn start(artefacts: &Path) -> Option<Self> {
        let name = variable(NAME).unwrap_or_else(|| "chromium".into());
        let folder = folder(&name)?;
        let mut child = Command::new(folder.join("node"))
            .arg(DRIVER)
            .arg(&folder)
            .arg(&name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pipes = Pipes {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            asked: 0,
        };
        Some(Self(Arc::new(Driver {
            child: Mutex::new(child),
            pipes: Mutex::new(pipes),
            artefacts: artefacts.to_owned(),
        })))
    }

    /// Opens the window of a person without a cookie.
    pub fn person(&self, look: Look) -> Person {
        let Look { width, dark, scripts } = look;
        let options = json!({"width": width, "dark": dark, "scripts": scripts});
        Person {
            id: self.0.ask("person", options),
            driver: Arc::clone(&self.0),
        }
    }

    /// Serves `files`, HTML by path, from another origin; returns that origin. With the host of the service it is the
    /// same site as the service, with another host (`localhost`, `127.0.0.1`) another site.
    pub fn site(&self, host: &str, files: &[(&str, &str)]) -> String {
        let files: Map<_, _> = files
            .iter()
            .map(|(path, html)| ((*path).to_owned(), json!(html)))
            .collect();
        self.0.ask("site", json!({"host": host, "files": files}))
    }
}

/// A variable that is there and not empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The folder of what drives the browser of this name.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn folder(name: &OsStr) -> Option<PathBuf> {
    let cache = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")));
    let folder = variable(FOLDER)
        .map(PathBuf::from)
        .or_else(|| cache.map(|cache| cache.join("sluice-tools/browser")));
    let found = folder.filter(|folder| folder.join("package-lock.json").is_file() && folder.join(name).exists());
    if found.is_none() {
        let missing = format!("there is no {}: tests/components/browser.sh brings one", name.display());
        assert!(variable("CI").is_none_or(|ci| ci != "true"), "{missing}");
        eprintln!("skipped: {missing}");
    }
    found
}

impl Driver {
    #[track_caller]
    fn ask<T: DeserializeOwned>(&self, what: &str, members: Value) -> T {
        let shown = members.to_string();
        match self.try_ask(what, members) {
            Ok(value) => serde_json::from_value(value).unwrap(),
            Err(error) => panic!("{what} {shown}: {error}"),
        }
    }

    fn try_ask(&self, what: &str, mut members: Value) -> Result<Value, String> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        pipes.asked += 1;
        let id = pipes.asked;
        members["id"] = json!(id);
        members["do"] = json!(what);
        let input = pipes.input.as_mut().ok_or("the browser has ended")?;
        writeln!(input, "{members}").map_err(|error| error.to_string())?;
        let mut line = String::new();
        pipes.output.read_line(&mut line).map_err(|error| error.to_string())?;
        let reply: Reply = serde_json::from_str(&line).map_err(|error| format!("the driver said {line:?}: {error}"))?;
        assert_eq!(reply.id, id, "the driver answered another command");
        reply.error.map_or(Ok(reply.value), Err)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Closing its input ends the driver within seconds, and that ends the browser.
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner).input.take();
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        child.wait().ok();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.try_ask("keep", json!({"folder": self.0.artefacts})).ok();
        }
    }
}

/// The conditions under which a person sees pages.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Width of the window in pixels.
    pub width: u32,
    /// Dark colours are preferred.
    pub dark: bool,
    /// Scripts run.
    pub scripts: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            width: 1_440,
            dark: false,
            scripts: true,
        }
    }
}

/// A person's window: what shares its cookies.
#[derive(Clone, Debug)]
pub struct Person {
    driver: Arc<Driver>,
    id: u64,
}

/// A cookie as the browser keeps it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// Scripts cannot read it.
    pub http_only: bool,
    /// Only sent by TLS.
    pub secure: bool,
    /// `Strict`, `Lax` or `None`.
    pub same_site: String,
}

impl Person {
    /// Opens a page.
    pub fn page(&self) -> Page {
        Page {
            id: self.driver.ask("page", json!({"person": self.id})),
            driver: Arc::clone(&self.driver),
        }
    }

    /// The cookies.
    pub fn cookies(&self) -> Vec<Cookie> {
        self.driver.ask("cookies", json!({"person": self.id}))
    }

    /// Puts a cookie for the origin `url`.
    pub fn put_cookie(&self, url: &str, name: &str, value: &str) {
        let cookie = json!({"url": url, "name": name, "value": value});
        self.driver
            .ask::<()>("cookie", json!({"person": self.id, "cookie": cookie}));
    }
}

/// A way to find an element of a page.
#[derive(Clone, Copy, Debug)]
pub enum By<'n> {
    /// The field with this label.
    Label(&'n str),
    /// The button of this name.
    Button(&'n str),
    /// The link of this name.
    Link(&'n str),
    /// The heading of this text.
    Heading(&'n str),
    /// The first element with this text in it.
    Text(&'n str),
    /// A CSS selector.
    Css(&'n str),
}

impl By<'_> {
    fn members(self) -> Value {
        match self {
            Self::Label(label) => json!({"label": label}),
            Self::Button(name) => json!({"role": "button", "name": name}),
            Self::Link(name) => json!({"role": "link", "name": name}),
            Self::Heading(name) => json!({"role": "heading", "name": name}),
            Self::Text(text) => json!({"text": text}),
            Self::Css(css) => json!({"css": css}),
        }
    }
}

/// The answer that a visit ended with.
#[derive(Clone, Debug, Deserialize)]
pub struct Visit {
    /// The status.
    pub status: u16,
    /// The address, redirects followed.
    pub url: String,
    /// The headers, names in lower case.
    pub headers: std::collections::BTreeMap<String, String>,
}

/// A file that the browser saved.
#[derive(Clone, Debug)]
pub struct SavedFile {
    /// The name that the service gave it.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Deserialize)]
struct SavedReply {
    name: String,
    base64: String,
}

/// The element that has the focus.
#[derive(Clone, Debug, Deserialize)]
pub struct Focus {
    /// Its tag; `body` when nothing has the focus.
    pub tag: String,
    /// The `type` attribute.
    #[serde(default)]
    pub r#type: String,
    /// Its label or text.
    pub name: String,
    /// Where a link leads.
    #[serde(default)]
    pub href: String,
    /// The focus can be seen.
    pub outlined: bool,
}

/// A finding of axe-core.
#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    /// The rule.
    pub id: String,
    /// `minor`, `moderate`, `serious` or `critical`.
    pub impact: String,
    /// The rule as a sentence.
    pub help: String,
    /// The elements and what is wrong there.
    pub at: Vec<String>,
}

/// A page in a person's window.
#[derive(Clone, Debug)]
pub struct Page {
    driver: Arc<Driver>,
    id: u64,
}

impl Page {
    #[track_caller]
    fn ask<T: DeserializeOwned>(&self, what: &str, members: Value) -> T {
        let members = crate::world::merged(members, json!({"page": self.id}));
        self.driver.ask(what, members)
    }

    #[track_caller]
    fn at<T: DeserializeOwned>(&self, what: &str, by: By<'_>, members: Value) -> T {
        self.ask(what, crate::world::merged(by.members(), members))
    }

    /// Opens an address.
    #[track_caller]
    pub fn goto(&self, url: impl Display) -> Visit {
        self.ask("goto", json!({"url": url.to_string()}))
    }

    /// Clicks what leads to another document, and waits for that.
    #[track_caller]
    pub fn submit(&self, by: By<'_>) -> Visit {
        self.at("submit", by, json!({}))
    }

    /// Presses a key that leads to another document, and waits for that.
    #[track_caller]
    pub fn enter(&self, key: &str) -> Visit {
        self.ask("enter", json!({"key": key}))
    }

    /// Clicks what has the browser save a file, and waits for the whole of it.
    #[track_caller]
    pub fn download(&self, by: By<'_>) -> SavedFile {
        self.saved(by.members())
    }

    /// Presses a key that has the browser save a file, and waits for the whole of it.
    #[track_caller]
    pub fn download_by(&self, key: &str) -> SavedFile {
        self.saved(json!({"key": key}))
    }

    #[track_caller]
    fn saved(&self, members: Value) -> SavedFile {
        let SavedReply { name, base64 } = self.ask("download", members);
        SavedFile {
            name,
            bytes: BASE64.decode(base64.as_bytes()).unwrap(),
        }
    }

    /// Clicks.
    #[track_caller]
    pub fn click(&self, by: By<'_>) {
        self.at::<()>("click", by, json!({}));
    }

    /// Fills a field.
    #[track_caller]
    pub fn fill(&self, by: By<'_>, text: &str) {
        self.at::<()>("fill", by, json!({"with": text}));
    }

    /// Ticks a box.
    #[track_caller]
    pub fn check(&self, by: By<'_>) {
        self.at::<()>("check", by, json!({}));
    }

    /// Picks the choice of a list that has this value.
    #[track_caller]
    pub fn pick(&self, by: By<'_>, value: &str) {
        self.at::<()>("pick", by, json!({"with": value}));
    }

    /// Chooses the file at a path.
    #[track_caller]
    pub fn choose(&self, by: By<'_>, file: &Path) {
        self.at::<()>("choose", by, json!({"file": file}));
    }

    /// Drops the file at a path.
    #[track_caller]
    pub fn drop_file(&self, by: By<'_>, file: &Path) {
        self.at::<()>("drop", by, json!({"file": file}));
    }

    /// Lets only the first `after` requests with this method to paths that begin with `path` through. Later ones get no
    /// answer.
    #[track_caller]
    pub fn stall(&self, method: &str, path: &str, after: u32) {
        self.ask::<()>("stall", json!({"method": method, "path": path, "after": after}));
    }

    /// Closes the tab.
    #[track_caller]
    pub fn close(&self) {
        self.ask::<()>("close", json!({}));
    }

    /// Waits until the address is this one.
    #[track_caller]
    pub fn arrive(&self, url: impl Display) {
        self.ask::<()>("at", json!({"url": url.to_string()}));
    }

    /// Presses a key.
    #[track_caller]
    pub fn press(&self, key: &str) {
        self.ask::<()>("press", json!({"key": key}));
    }

    /// Types where the focus is.
    #[track_caller]
    pub fn type_keys(&self, keys: &str) {
        self.ask::<()>("type", json!({"keys": keys}));
    }

    /// Waits until an element can be seen.
    #[track_caller]
    pub fn see(&self, by: By<'_>) {
        self.at::<()>("see", by, json!({}));
    }

    /// The number of elements.
    #[track_caller]
    pub fn count(&self, by: By<'_>) -> usize {
        self.at("count", by, json!({}))
    }

    /// The text of an element as a person sees it.
    #[track_caller]
    pub fn read(&self, by: By<'_>) -> String {
        self.at("read", by, json!({}))
    }

    /// The text of the page as a person sees it.
    #[track_caller]
    pub fn text(&self) -> String {
        self.read(By::Css("body"))
    }

    /// An attribute of an element.
    #[track_caller]
    pub fn attribute(&self, by: By<'_>, name: &str) -> Option<String> {
        self.at("attribute", by, json!({"attribute": name}))
    }

    /// The document as it is now.
    #[track_caller]
    pub fn html(&self) -> String {
        self.ask("html", json!({}))
    }

    /// The address.
    #[track_caller]
    pub fn url(&self) -> String {
        self.ask("url", json!({}))
    }

    /// The value of a script.
    #[track_caller]
    pub fn evaluate(&self, script: &str) -> Value {
        self.ask("evaluate", json!({"script": script}))
    }

    /// The element that has the focus.
    #[track_caller]
    pub fn focused(&self) -> Focus {
        self.ask("focused", json!({}))
    }

    /// The addresses of the frames in the page.
    #[track_caller]
    pub fn frames(&self) -> Vec<String> {
        self.ask("frames", json!({}))
    }

    /// The requests of the page so far: method and address.
    #[track_caller]
    pub fn requests(&self) -> Vec<String> {
        self.ask("requests", json!({}))
    }

    /// What sticks out to the right; empty when the page cannot be scrolled there.
    #[track_caller]
    pub fn overflowing(&self) -> Vec<String> {
        self.ask("overflowing", json!({}))
    }

    /// Errors and warnings of the console (a violation of the content security policy is one), failed scripts, dialogs
    /// and requests to another origin since the last call.
    #[track_caller]
    pub fn complaints(&self) -> Vec<String> {
        self.ask("complaints", json!({}))
    }

    /// Shows the same document at another width and in other colours.
    #[track_caller]
    pub fn look(&self, width: u32, dark: bool) {
        self.ask::<()>("look", json!({"width": width, "dark": dark}));
    }

    /// What axe-core finds by the rules of WCAG 2.0 to 2.2, A and AA, and of best practice.
    #[track_caller]
    pub fn axe(&self) -> Vec<Finding> {
        self.ask("axe", json!({}))
    }

    /// Writes a picture of the whole page.
    #[track_caller]
    pub fn picture(&self, file: &Path) {
        self.ask::<()>("picture", json!({"file": file}));
    }
}
