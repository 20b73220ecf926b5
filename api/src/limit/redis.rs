//! Counters in Redis, shared by every replica that names the same one.
//!
//! Invariants:
//! - A count is one script, which Redis runs whole; every key expires once its window counts nothing any more.
//! - A connection that failed, or did not answer in the caller's time, serves no later call: the next one connects anew.
//!   So a peer that went away without a word is not waited for twice.
//! - Connecting goes on when the caller has no more time for it, so a Redis that is slow to be reached is reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, RedisError as Failure, Script};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use types::Timestamp;

use super::window::Window;
use super::{Counters, Rule, Source, Taken, Unavailable};

/// Counts one unless the limit is reached. The same arithmetic as `Window::admit`, here in doubles, which are exact for
/// every limit up to a million an hour.
const TAKE: &str = r"
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

/// The address is not one of a Redis.
#[derive(Debug, thiserror::Error)]
#[error("it is not the address of a Redis (`redis://[user:password@]host[:port][/database]`, `rediss://` for TLS)")]
pub struct RedisError(#[source] Failure);

/// How long connecting may take, whether or not somebody waits for it.
const CONNECTING: Duration = Duration::from_secs(5);

/// Counters in a Redis.
pub struct Redis {
    server: Arc<Server>,
    connection: Mutex<Arc<OnceCell<MultiplexedConnection>>>,
}

/// Why by hand: the client knows the password.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").finish_non_exhaustive()
    }
}

/// What is asked.
struct Server {
    client: Client,
    take: Script,
}

impl Server {
    /// A connection over which the script is known.
    async fn connect(&self) -> Result<MultiplexedConnection, Failure> {
        // Why no time-outs here: there is one for all of it.
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

/// A connection in use; unless it answered, it serves nobody else.
struct InUse<'a> {
    redis: &'a Redis,
    cell: Arc<OnceCell<MultiplexedConnection>>,
    answered: bool,
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut current = self.redis.connection.lock();
        if !self.answered && Arc::ptr_eq(&current, &self.cell) {
            *current = Arc::default();
        }
    }
}

impl Redis {
    /// The counters at `url`; nothing is asked yet.
    ///
    /// # Errors
    /// The address cannot be read; the message does not repeat it, because it may have a password.
    pub fn new(url: &str) -> Result<Self, RedisError> {
        let server = Server {
            client: Client::open(url).map_err(RedisError)?,
            take: Script::new(TAKE),
        };
        Ok(Self {
            server: Arc::new(server),
            connection: Mutex::default(),
        })
    }

    /// Asks over the one connection, which is made where there is none.
    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, Failure>,
    ) -> Result<T, Unavailable> {
        let cell = Arc::clone(&self.connection.lock());
        let mut connection = self.connected(&cell).await?;
        let mut used = InUse {
            redis: self,
            cell,
            answered: false,
        };
        let answer = question(&mut connection).await.map_err(unavailable)?;
        used.answered = true;
        Ok(answer)
    }

    async fn connected(
        &self,
        cell: &Arc<OnceCell<MultiplexedConnection>>,
    ) -> Result<MultiplexedConnection, Unavailable> {
        if let Some(connection) = cell.get() {
            return Ok(connection.clone());
        }
        let (server, cell) = (Arc::clone(&self.server), Arc::clone(cell));
        let connecting = tokio::spawn(async move {
            let connecting = cell.get_or_try_init(|| server.connect());
            match tokio::time::timeout(CONNECTING, connecting).await {
                Ok(connected) => connected.cloned().map_err(unavailable),
                Err(late) => Err(unavailable(late)),
            }
        });
        connecting.await.map_err(unavailable)?
    }
}

/// The key of a window; the braces keep the windows of one address together in a cluster of Redis.
fn key(rule: Rule, source: Source, number: i64) -> String {
    format!("sluice:{{{}:{source}}}:{number}", rule.name)
}

fn unavailable(failure: impl std::error::Error + Send + Sync + 'static) -> Unavailable {
    Unavailable(Box::new(failure))
}

#[async_trait]
impl Counters for Redis {
    async fn take(&self, rule: Rule, source: Source, now: Timestamp) -> Result<Taken, Unavailable> {
        let window = Window::at(rule, now);
        let mut call = self.server.take.key(key(rule, source, window.number));
        // Why: it counts in its own window and in the next.
        let millis = (window.left + window.length) / 1_000 + 1;
        call.key(key(rule, source, window.number - 1))
            .arg(rule.limit)
            .arg(window.left)
            .arg(window.length)
            .arg(millis);
        let (admitted, count, before): (u8, u32, u32) =
            self.ask(async |connection| call.invoke_async(connection).await).await?;
        if admitted == 1 {
            return Ok(Taken::Admitted);
        }
        Ok(match window.admit(rule.limit, count, before) {
            Taken::Admitted => Taken::Refused(1),
            refused @ Taken::Refused(_) => refused,
        })
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
