//! The rate limiter's counters: in this process, or in a Redis that replicas share.
//!
//! Invariant: no output shows the address of the Redis, because it may contain a password.

use api::state::limit::Limiter;

use crate::config::Cache;

/// Returns the rate limiter that the configuration selects.
pub fn limiter(config: &Cache) -> anyhow::Result<Limiter> {
    if config.url.is_empty() {
        // Without a shared cache each process counts for itself.
        return Ok(Limiter::default());
    }
    shared(config)
}

#[cfg(feature = "redis")]
fn shared(config: &Cache) -> anyhow::Result<Limiter> {
    use anyhow::Context;

    let counters = api::state::limit::RedisCounters::new(&config.url).context("`cache.url`")?;
    Ok(Limiter::shared(std::sync::Arc::new(counters), config.timeout.0))
}

#[cfg(not(feature = "redis"))]
fn shared(_: &Cache) -> anyhow::Result<Limiter> {
    anyhow::bail!("`cache.url`: this build knows no Redis; build it with the feature `redis`, or leave the key empty")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use types::HumanDuration;

    fn refused(url: &str) -> String {
        let config = Cache {
            url: url.to_owned(),
            timeout: HumanDuration(Duration::from_millis(75)),
        };
        format!("{:#}", limiter(&config).unwrap_err())
    }

    #[test]
    fn no_address_is_no_cache() {
        let config = Cache {
            url: String::new(),
            timeout: HumanDuration(Duration::from_millis(75)),
        };
        assert!(limiter(&config).is_ok());
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn a_build_that_knows_no_redis_does_not_pretend_to_have_one() {
        assert!(refused("redis://:hush@localhost").contains("feature `redis`"));
    }

    #[cfg(feature = "redis")]
    #[test]
    fn an_address_that_is_none_is_refused_by_its_key_and_not_repeated() {
        let message = refused("http://:hush@localhost");
        assert!(
            message.contains("`cache.url`") && !message.contains("hush"),
            "{message}"
        );
    }
}
