//! The log of the process: structured events on standard error.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{Format, Telemetry};

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter is not one.
    #[error("`telemetry.filter`: `{filter}` is not a level or a list of directives")]
    Filter {
        /// The filter.
        filter: String,
        /// The cause.
        #[source]
        source: ParseError,
    },
}

/// Starts the log; a second call in one process changes nothing.
pub fn start(config: &Telemetry) -> Result<(), Error> {
    let filter = EnvFilter::try_new(&config.filter).map_err(|source| Error::Filter {
        filter: config.filter.clone(),
        source,
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let started = match config.format {
        Format::Text => builder.with_ansi(crate::terminal::is_watched()).try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    };
    if started.is_err() {
        tracing::debug!("the log of this process was started before");
    }
    Ok(())
}
