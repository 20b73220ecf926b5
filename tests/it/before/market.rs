//! The market that `fixtures/market/make.py` left in the middle of everything, on both databases.
//!
//! Invariant: what is expected is what the earlier build answered, and what it promised about what was open.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
#[cfg(feature = "postgres")]
use store::testing::Postgres;
use tempfile::TempDir;
use tests::apps::App;
use tests::server::{Options, Server};
use tests::world::decided;
use tests::{Answer, Http};

use super::{fixture, json_of, unpack};
use crate::binary;

/// Time for which a connection of an app renews its access.
const RENEWAL: Duration = Duration::from_hours(30 * 24);
/// Time around the end of something at which it may be over or not.
const DOUBT: Duration = Duration::from_mins(10);
/// Price of the sale that is disputed.
const PRICE: i64 = 500_000;

/// An unpacked market.
struct Market {
    folder: TempDir,
    frozen: Value,
    options: Options,
    /// Time by which its clock is ahead.
    ahead: Duration,
}

impl Market {
    fn unpack(archive: &str, ahead: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        unpack(archive, folder.path());
        let frozen = json_of(&folder.path().join("frozen.json"));
        let options = Options::new(binary(), folder.path().join("data"))
            .config(fixture("market/config.toml"))
            .with("SLUICE__SERVER__PUBLIC_URL", text(&frozen["base"]))
            .with("SLUICE__CLOCK__OFFSET", format!("{}h", ahead.as_secs() / 3_600));
        Self {
            folder,
            frozen,
            options,
            ahead,
        }
    }

    /// Returns a caller with a credential by its name; without one for null.
    fn caller(&self, http: &Http, name: &Value) -> Http {
        name.as_str()
            .map_or_else(|| http.anonymous(), |name| http.with(text(&self.frozen["keys"][name])))
    }

    fn id(&self, name: &str) -> &str {
        text(&self.frozen["at"][name])
    }

    /// Returns true if an instant, in microseconds since 1970, is over; none if that may change meanwhile.
    fn is_over(&self, instant: i64) -> Option<bool> {
        let now = jiff::Timestamp::now().as_microsecond() + micros(self.ahead);
        ((now - instant).abs() > micros(DOUBT)).then_some(now > instant)
    }

    /// Everything that was open ends as it must.
    async fn finishes(&self, http: &Http) {
        for open in items(&self.frozen["open"]) {
            let (caller, path) = (self.caller(http, &open["key"]), text(&open["path"]));
            let is_decided = |answer: &Answer| !["submitted", "queued", "waiting"].contains(&answer.text("/status"));
            let ended = caller.comes_to_show(path, is_decided).await;
            assert_eq!(ended.body["status"], open["status"], "{path}: {}", ended.body);
        }
        let half = &self.frozen["uploads"]["half"];
        let (caller, slug) = (self.caller(http, &half["owner"]), text(&half["slug"]));
        let completed = self.complete(http, half).await.expect(201);
        let merged = decided(&caller, slug, completed.text("/id")).await;
        assert_eq!(merged.body["status"], "merged", "{}", merged.body);
        // Again is the same contribution.
        let again = self.complete(http, half).await.expect(201);
        assert_eq!(again.body["id"], completed.body["id"]);
        // The time of the other is over, so its bytes go.
        let late = &self.frozen["uploads"]["expiring"];
        assert_eq!(self.complete(http, late).await.expect(409).error(), "upload_expired");
        let parts = self.options.data().join("uploads").join(text(&late["id"]));
        let quota = self.caller(http, &late["owner"]);
        quota.comes_to_show("/quota", |_| !parts.exists()).await;
    }

    async fn complete(&self, http: &Http, upload: &Value) -> Answer {
        let (slug, id) = (text(&upload["slug"]), text(&upload["id"]));
        let path = format!("/projects/{slug}/uploads/{id}/complete");
        let body = json!({"etags": upload["etags"]});
        self.caller(http, &upload["owner"]).post(&path, &body).await
    }

    /// Every dataset has the versions and the records of what was acknowledged, and no more.
    async fn has_everything_once(&self, http: &Http) {
        for (slug, latest) in self.frozen["finally"].as_object().unwrap() {
            let caller = self.caller(http, &latest["owner"]);
            let shown = caller.get(&format!("/projects/{slug}")).await.expect(200);
            assert_eq!(
                (&shown.body["latestVersion"], &shown.body["recordCount"]),
                (&latest["version"], &latest["records"]),
                "{slug}"
            );
        }
        let points = self.caller(http, &json!("author")).get("/points?limit=100").await;
        let mut subjects: Vec<_> = items(&points.expect(200).body["events"]["items"])
            .iter()
            .map(|event| event["kind"].to_string() + &event["subject"].to_string())
            .collect();
        let count = subjects.len();
        subjects.sort_unstable();
        subjects.dedup();
        assert_eq!(subjects.len(), count, "points are given once");
    }

    /// Shares become payable, and the dispute that is open is decided.
    async fn settles(&self, http: &Http) {
        let due = |who: &str| {
            let earned = &self.frozen["earned"][who];
            let held = &earned["onHold"];
            let released: jiff::Timestamp = text(&held["lastReleaseAt"]).parse().unwrap();
            let all = earned["payableMicro"].as_i64().unwrap() + held["totalMicro"].as_i64().unwrap();
            (all, self.is_over(released.as_microsecond()))
        };
        for who in ["seller", "author"] {
            let (all, is_over) = due(who);
            let is_right = |answer: &Answer| {
                let held = answer.body["onHold"]["totalMicro"].as_i64().unwrap();
                let is_all = answer.body["payableMicro"].as_i64().unwrap() + held == all;
                is_all && is_over.is_none_or(|is_over| (held == 0) == is_over)
            };
            self.caller(http, &json!(who))
                .comes_to_show("/earnings", is_right)
                .await;
        }
        let reader = self.caller(http, &json!("reader"));
        let before = reader.get("/credits").await.expect(200).body["boughtMicro"]
            .as_i64()
            .unwrap();
        let options = self.options.clone();
        let dispute = self.id("dispute").to_owned();
        let resolved = tokio::task::block_in_place(|| {
            options.admin(&["disputes", "resolve", &dispute, "--refund", "--answer", "refunded"])
        });
        assert_eq!(resolved["saleState"], "refunded");
        reader
            .comes_to_show("/credits", |answer| answer.body["boughtMicro"] == before + PRICE)
            .await;
    }

    /// An app renews its access until the connection has ended.
    async fn renews(&self, http: &Http) {
        let connected = self.frozen["at"]["connected"].as_i64().unwrap();
        let Some(is_over) = self.is_over(connected + micros(RENEWAL)) else {
            return;
        };
        let app = App::known(http.base(), self.id("app"));
        let renewed = app.renew(text(&self.frozen["keys"]["refresh"])).await;
        if is_over {
            // An app without a connection is forgotten in time.
            assert!(
                ["invalid_grant", "invalid_client"].contains(&renewed.error()),
                "{renewed:?}"
            );
            return;
        }
        let access = http.with(renewed.expect(200).text("/access_token"));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        access.post("/mcp", &message).await.expect(200);
    }

    /// What was read before is read the same: whole answers byte for byte, of others every member that there was.
    async fn answers_as_before(&self, http: &Http) {
        let mut changed = Vec::new();
        for then in items(&self.frozen["answers"]) {
            let (caller, path) = (self.caller(http, &then["key"]), text(&then["path"]));
            let now = match &then["body"] {
                Value::Null => caller.get(path).await,
                body => caller.post(path, body).await,
            };
            let is_same = now.code() == 200
                && match (&then["exact"], &then["lines"]) {
                    (Value::String(exact), _) => exact.as_bytes() == now.bytes,
                    (_, Value::Array(_)) => keeps(&then["lines"], &lines_of(&now.bytes)),
                    _ => keeps(&then["members"], &now.body),
                };
            if !is_same {
                let now = String::from_utf8_lossy(&now.bytes).into_owned();
                changed.push(format!("{path} {}\nthen {then}\nnow  {now}", then["body"]));
            }
        }
        assert!(changed.is_empty(), "{}", changed.join("\n\n"));
    }

    /// A paid dataset shows no row and no figure before its owner has chosen.
    async fn offers_nothing_that_nobody_offered(&self, http: &Http) {
        let seen = http.anonymous().get("/projects/harbours/preview").await.expect(200);
        assert_eq!(
            (&seen.body["rows"], &seen.body["level"]),
            (&json!([]), &json!("public"))
        );
        assert!(seen.body["records"].as_u64().unwrap() > 0);
        http.anonymous().get("/projects/harbours/profile").await.expect(404);
        let project = http.anonymous().get("/projects/harbours").await.expect(200);
        assert_eq!(project.body["previewRows"], Value::Null);
        let own = self.caller(http, &json!("seller"));
        own.comes_to_show("/projects/harbours/profile", |answer| answer.body["level"] == "full")
            .await;
    }

    /// The files of the parts are there with their bytes, and downloaded with them.
    async fn has_its_parts(&self, http: &Http) {
        let tables = self.options.data().join("tables");
        for (path, hash) in self.frozen["parts"].as_object().unwrap() {
            assert_eq!(&sha256(&std::fs::read(tables.join(path)).unwrap()), hash, "{path}");
        }
        for then in items(&self.frozen["answers"]) {
            let path = text(&then["path"]);
            if !path.contains("/manifest?") {
                continue;
            }
            let manifest = self.caller(http, &then["key"]).get(path).await.expect(200);
            for part in items(&manifest.body["parts"]) {
                let (_, address) = text(&part["url"]).split_at(text(&self.frozen["base"]).len());
                let bytes = http.anonymous().get(address).await.expect(200).bytes;
                assert_eq!(sha256(&bytes), part["sha256"], "{path}: {part}");
            }
        }
    }

    /// The version that was pulled with the earlier program is verified by this one.
    fn verifies(&self) {
        let at = |name: &str| self.folder.path().join(name).into_os_string();
        let verified = std::process::Command::new(binary())
            .arg("verify")
            .arg(at("pulled"))
            .arg("--known-keys")
            .arg(at("known-keys.json"))
            .output()
            .unwrap();
        assert!(
            verified.status.success(),
            "{}",
            String::from_utf8_lossy(&verified.stderr)
        );
    }

    async fn goes_on(self) {
        tokio::task::block_in_place(|| self.verifies());
        let server = Server::start(&self.options).await;
        let http = server.http();
        self.finishes(&http).await;
        self.has_everything_once(&http).await;
        self.answers_as_before(&http).await;
        self.has_its_parts(&http).await;
        self.offers_nothing_that_nobody_offered(&http).await;
        self.renews(&http).await;
        self.settles(&http).await;
        assert!(server.stop().await.success());
        // The next start has nothing to finish.
        let server = Server::start(&self.options).await;
        self.has_everything_once(&server.http()).await;
        self.answers_as_before(&server.http()).await;
        assert!(server.stop().await.success());
        self.options.assert_consistent();
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text and not {value}"))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("a list and not {value}"))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

/// Returns a list of the lines of JSON.
fn lines_of(bytes: &[u8]) -> Value {
    let lines = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    lines.map(Result::unwrap).collect()
}

/// Returns true if `now` has everything that `then` had; an object may have more members.
fn keeps(then: &Value, now: &Value) -> bool {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then
            .iter()
            .all(|(name, then)| now.get(name).is_some_and(|now| keeps(then, now))),
        (Value::Array(then), Value::Array(now)) => {
            then.len() == now.len() && then.iter().zip(now).all(|(then, now)| keeps(then, now))
        }
        _ => then == now,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_market_of_an_earlier_build_goes_on_in_its_folder() {
    Market::unpack("market/sqlite.tar.gz", Duration::ZERO).goes_on().await;
}

/// At a time at which everything that ends has ended.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_market_of_an_earlier_build_goes_on_from_its_dump_after_years() {
    let Some(server) = Postgres::shared() else { return };
    let mut market = Market::unpack("market/postgres.tar.gz", Duration::from_hours(3 * 365 * 24));
    let url = tokio::task::block_in_place(|| server.database_of(&fixture("market/postgres.sql.gz")));
    market.options = market.options.with("SLUICE__DATABASE__URL", url);
    market.goes_on().await;
}
