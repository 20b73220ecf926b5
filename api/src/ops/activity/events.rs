//! The feed as server-sent events (the WHATWG HTML standard, section 9.2).
//!
//! Invariant: the database is asked for entries only after its counter has moved, and for the counter at most twice a
//! second for all clients of a process together, and once more for a client whose cursor is beyond it.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CURSOR, FeedEntry, number};
use crate::call::answer::{BodyMedia, StreamedAnswer};
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::state::app::App;
use crate::state::limit::LimitSource;
use types::error::with_causes;

/// Interval at which a client is looked after.
const TICK: Duration = Duration::from_millis(500);
/// Ticks without an event after which a comment keeps the connection alive.
const QUIET: u32 = 30;
/// Entries sent at a time.
const BATCH: u32 = 100;
/// Seconds for which a client follows where it does not say.
const DEFAULT_SECONDS: u32 = 300;

/// Media type of server-sent events.
pub(super) struct FeedEventsMedia;

impl BodyMedia for FeedEventsMedia {
    const TYPE: &'static str = "text/event-stream";

    fn schema() -> Value {
        // One event.
        let text = json!({"type": "string"});
        json!({"type": "object", "properties": {"id": text, "event": text, "data": text}})
    }
}

/// Client of the feed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FeedFollower {
    /// Cursor after which the events begin; the newest entry where not given.
    #[schemars(regex(pattern = CURSOR))]
    after: Option<String>,
    /// The same, as a client that comes back sends it; outranks `after`.
    #[schemars(regex(pattern = CURSOR))]
    last_event_id: Option<String>,
    /// Seconds after which the answer ends; 300 where not given. The client then comes back.
    #[schemars(range(min = 1, max = 3_600))]
    seconds: Option<u32>,
}

pub(super) async fn follow(cx: Cx, input: FeedFollower) -> Result<StreamedAnswer<FeedEventsMedia>, ApiError> {
    let app = &cx.app;
    let permits = &app.process.followers;
    // By address, since the feed reads no credential.
    let permit = permits.try_acquire(LimitSource::from(cx.client), 1).ok_or_else(|| {
        let message = "too many clients of this address follow the feed; close one";
        ApiError::rate_limited(message, 30)
    })?;
    // Browsers send the header when they connect again, so it is newer than the address.
    let known = app.process.newest.of(&app.store, cx.now).await?;
    let from = match input.last_event_id.as_deref().or(input.after.as_deref()) {
        Some(cursor) => number(cursor, "/after")?,
        None => known,
    };
    // Another process may know a newer entry than this one does, so the database itself is asked.
    let newest = if from > known {
        app.store.feed().last().await?
    } else {
        known
    };
    let is_beyond = from > newest;
    let ticks = u64::from(input.seconds.unwrap_or(DEFAULT_SECONDS)) * 1_000 / 500;
    let client = FeedClient {
        app: app.as_ref().clone(),
        // No entry will have a number up to the cursor for a long time, so the client begins anew.
        seq: from.min(newest),
        ticks_left: ticks,
        quiet: 0,
        greeting: Some(greeting(is_beyond.then_some(newest))),
    };
    let pieces = stream::unfold((client, permit), |(mut client, permit)| async move {
        let piece = client.next().await?;
        Some((Ok(piece), (client, permit)))
    });
    Ok(StreamedAnswer::ok(pieces.boxed()))
}

/// A client that follows the feed.
struct FeedClient {
    app: App,
    /// Number of the last entry that was looked at.
    seq: i64,
    ticks_left: u64,
    quiet: u32,
    /// First piece of the answer, until it is sent.
    greeting: Option<Bytes>,
}

/// Returns the first piece of an answer: how soon a client comes back, and where it begins if its cursor is beyond the
/// newest entry.
fn greeting(reset: Option<i64>) -> Bytes {
    let reset = reset.map(|newest| format!("id: {newest}\nevent: reset\ndata: {{\"cursor\":\"{newest}\"}}\n\n"));
    format!("retry: 1000\n\n{}", reset.unwrap_or_default()).into()
}

impl FeedClient {
    /// Returns the next piece of the answer; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(greeting) = self.greeting.take() {
            // The head of the answer is sent with its first piece.
            return Some(greeting);
        }
        // A replica that drains lets its clients go: they come back to another one with their last
        // cursor.
        while self.ticks_left > 0 && !self.app.drain.has_begun() {
            match self.entries().await {
                Ok(Some(text)) => {
                    self.quiet = 0;
                    return Some(text.into());
                }
                Ok(None) => {}
                // The client comes back with its last cursor.
                Err(error) => {
                    tracing::debug!(error = with_causes(&error), "an answer with events ends early");
                    return None;
                }
            }
            tokio::time::sleep(TICK).await;
            self.ticks_left -= 1;
            self.quiet += 1;
            if self.quiet >= QUIET {
                self.quiet = 0;
                // Proxies close connections that are silent for long. A line with a colon is a comment,
                // which clients drop.
                return Some(Bytes::from_static(b": still here\n\n"));
            }
        }
        None
    }

    /// Returns the entries after the last one as events, if there are any.
    async fn entries(&mut self) -> Result<Option<String>, store::Error> {
        let app = &self.app;
        let newest = app.process.newest.of(&app.store, app.clock.now()).await?;
        if newest <= self.seq {
            return Ok(None);
        }
        let found = app.store.feed().after(self.seq, BATCH).await?;
        // Numbers up to the newest that are not shown are passed over for good.
        self.seq = match found.last() {
            Some(last) if found.len() == BATCH as usize => last.seq,
            Some(last) => newest.max(last.seq),
            None => newest,
        };
        let base = app.config.public_url.as_str();
        let events = found.into_iter().map(|entry| {
            let (seq, kind) = (entry.seq, entry.kind);
            // An entry always has a JSON form, on one line.
            let data = serde_json::to_string(&FeedEntry::of(entry, base)).unwrap_or_default();
            format!("id: {seq}\nevent: {kind}\ndata: {data}\n\n")
        });
        let text: String = events.collect();
        Ok((!text.is_empty()).then_some(text))
    }
}
