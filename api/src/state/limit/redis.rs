//! Counters in Redis, shared by all replicas that use the same server.
//!
//! Invariants:
//! - A count is one script, which Redis runs atomically. Every key expires once its window no longer counts.
//! - A connection that failed, or did not answer in the caller's time, is not used again: the next call opens a new
//!   one. So a peer that vanished is waited for once only.
//! - Connecting continues when the caller's time is over, so that a slow Redis is reached in the end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, RedisError as Failure, Script};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use types::Timestamp;

use super::window::LimitWindow;
use super::{CountersUnavailable, LimitCounters, LimitDecision, LimitSource, RateRule};

/// Lua script that counts one event unless the limit is reached. Its arithmetic is that of `LimitWindow::admit`, in doubles,
/// which are exact for every limit up to a million per hour.
const TAKE_SCRIPT: &str = r"
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
local before = tonumber(redis.call('GET', KEYS[2]) or '0')
local limit, left, length = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if math.floor(before * left / length) >= limit - count then
  return {0, count, before}
end
redis.call('INCR', KEYS[1])
if count == 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return {1, count, before}
";

/// Error of an address that is not one of a Redis.
#[derive(Debug, thiserror::Error)]
#[error("it is not the address of a Redis (`redis://[user:password@]host[:port][/database]`, `rediss://` for TLS)")]
pub struct RedisError(#[source] Failure);

/// Time limit for connecting, even if no caller waits any more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Counters in a Redis server.
pub struct RedisCounters {
    server: Arc<RedisServer>,
    connection: Mutex<Arc<OnceCell<MultiplexedConnection>>>,
}

/// Shows no fields, since the client contains the password.
impl fmt::Debug for RedisCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").finish_non_exhaustive()
    }
}

/// Server, and the script to run on it.
struct RedisServer {
    client: Client,
    take: Script,
}

impl RedisServer {
    /// Opens a connection and loads the script.
    async fn connect(&self) -> Result<MultiplexedConnection, Failure> {
        // The caller limits connecting as a whole, so the single steps need no time limit.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let mut connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        self.take.load_async(&mut connection).await?;
        Ok(connection)
    }
}

/// Guard of a connection in use. Unless an answer arrived, the connection is not used again.
struct InUse<'a> {
    redis: &'a RedisCounters,
    cell: Arc<OnceCell<MultiplexedConnection>>,
    answered: bool,
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut current = self.redis.connection.lock();
        // A later call may have replaced the connection already, and that one must stay.
        if !self.answered && Arc::ptr_eq(&current, &self.cell) {
            *current = Arc::default();
        }
    }
}

impl RedisCounters {
    /// Creates counters at `url`, without connecting.
    ///
    /// # Errors
    /// The address is invalid. The message does not contain it, because it may contain a password.
    pub fn new(url: &str) -> Result<Self, RedisError> {
        let server = RedisServer {
            client: Client::open(url).map_err(RedisError)?,
            take: Script::new(TAKE_SCRIPT),
        };
        Ok(Self {
            server: Arc::new(server),
            connection: Mutex::default(),
        })
    }

    /// Runs a command over the one connection, which is opened if there is none.
    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, Failure>,
    ) -> Result<T, CountersUnavailable> {
        // The lock is held to copy the cell, never while connecting.
        let cell = Arc::clone(&self.connection.lock());
        let mut connection = self.connected(&cell).await?;
        let mut used = InUse {
            redis: self,
            cell,
            answered: false,
            // Set only after the answer: a caller that gives up drops the guard, and with it the connection.
        };
        let answer = question(&mut connection).await.map_err(unavailable)?;
        used.answered = true;
        Ok(answer)
    }

    async fn connected(
        &self,
        cell: &Arc<OnceCell<MultiplexedConnection>>,
    ) -> Result<MultiplexedConnection, CountersUnavailable> {
        if let Some(connection) = cell.get() {
            return Ok(connection.clone());
        }
        let (server, cell) = (Arc::clone(&self.server), Arc::clone(cell));
        // A task connects, so that it continues when the caller gives up.
        let connecting = tokio::spawn(async move {
            let connecting = cell.get_or_try_init(|| server.connect());
            match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
                Ok(connected) => connected.cloned().map_err(unavailable),
                Err(late) => Err(unavailable(late)),
            }
        });
        connecting.await.map_err(unavailable)?
    }
}

/// Returns the key of a window. The braces keep the windows of one address on the same node of a Redis cluster.
fn key(rule: RateRule, source: LimitSource, number: i64) -> String {
    format!("sluice:{{{}:{source}}}:{number}", rule.name)
}

fn unavailable(failure: impl std::error::Error + Send + Sync + 'static) -> CountersUnavailable {
    CountersUnavailable(Box::new(failure))
}

#[async_trait]
impl LimitCounters for RedisCounters {
    async fn take(
        &self,
        rule: RateRule,
        source: LimitSource,
        now: Timestamp,
    ) -> Result<LimitDecision, CountersUnavailable> {
        let window = LimitWindow::at(rule, now);
        let mut call = self.server.take.key(key(rule, source, window.number));
        // A count is used in its own window and in the next, so the key lives until the end of the next.
        let millis = (window.left + window.length) / 1_000 + 1;
        call.key(key(rule, source, window.number - 1))
            .arg(rule.limit)
            .arg(window.left)
            .arg(window.length)
            .arg(millis);
        let (admitted, count, before): (u8, u32, u32) =
            self.ask(async |connection| call.invoke_async(connection).await).await?;
        if admitted == 1 {
            return Ok(LimitDecision::Allow);
        }
        // The script decided. If the arithmetic here differs by rounding, the wait is a second.
        Ok(match window.admit(rule.limit, count, before) {
            LimitDecision::Allow => LimitDecision::Deny { retry_after: 1 },
            refused @ LimitDecision::Deny { .. } => refused,
        })
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
