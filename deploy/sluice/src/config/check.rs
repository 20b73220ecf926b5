//! Rules for a configuration that the types of its values cannot express.

use std::net::IpAddr;
use std::time::Duration;

use messages::SUBMISSION_FORMAT;

use types::{HumanDuration, Size};

use super::{Backend, Config, Error};

/// The longest `wait` that the interface promises and its clients ask for.
const MIN_WAIT: Duration = Duration::from_secs(20);
/// The longest validity of a part's address in a bucket. Nothing else ends the access of a suspended operator.
const MAX_PART_URL: Duration = Duration::from_mins(15);
/// The longest validity of an address that S3 accepts (Signature Version 4).
const MAX_UPLOAD_URL: Duration = Duration::from_hours(7 * 24);

/// The most dimensions of a vector.
const MOST_DIMENSIONS: usize = 8_192;
/// The least characters that a chat model is shown of a text.
const LEAST_CONTEXT: usize = 4_000;

impl Config {
    /// Checks the rules that types cannot express; the error names the first key that breaks one.
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.server.public_url.is_empty() && !is_address(&self.server.public_url) {
            return Err(Error::Address {
                key: "server.public_url",
            });
        }
        // Letters to it would fail one by one, each long after the start.
        let administrator = self.mail.administrator.as_str();
        if !administrator.is_empty() && !mail::is_address(administrator) {
            return Err(Error::Mailbox {
                key: "mail.administrator",
            });
        }
        // Strangers could make the service fetch from the network that it protects.
        if self.outbound.allow_private && !self.is_private() {
            return Err(Error::Public {
                key: "outbound.allow_private",
            });
        }
        self.check_models()?;
        self.pay.check()?;
        self.check_times()?;
        self.check_sizes()?;
        self.check_defaults()?;
        // No worker of this build could read what it writes.
        if self.messages.write_format > SUBMISSION_FORMAT {
            return Err(Error::TooLarge {
                key: "messages.write_format",
                most: SUBMISSION_FORMAT.to_string(),
            });
        }
        // Replacing one part by itself would go on for ever.
        if self.compaction.fan_in.get() < 2 {
            return Err(Error::TooSmall {
                key: "compaction.fan_in",
                least: "2",
            });
        }
        Ok(())
    }

    fn check_models(&self) -> Result<(), Error> {
        let models = &self.models;
        for (key, value) in [
            ("models.chat", &models.chat),
            ("models.appeal", &models.appeal),
            ("models.embeddings", &models.embeddings),
        ] {
            if !value.is_empty() && models.url.is_empty() {
                return Err(Error::Alone {
                    key,
                    other: "models.url",
                });
            }
        }
        if !models.embeddings.is_empty() && models.dimensions == 0 {
            return Err(Error::Alone {
                key: "models.embeddings",
                other: "models.dimensions",
            });
        }
        let prefixes = [
            ("models.query_prefix", &models.query_prefix),
            ("models.document_prefix", &models.document_prefix),
        ];
        for (key, prefix) in prefixes {
            if !prefix.is_empty() && models.embeddings.is_empty() {
                return Err(Error::Alone {
                    key,
                    other: "models.embeddings",
                });
            }
        }
        if models.dimensions > MOST_DIMENSIONS {
            return Err(Error::TooLarge {
                key: "models.dimensions",
                most: MOST_DIMENSIONS.to_string(),
            });
        }
        if models.context_characters < LEAST_CONTEXT {
            return Err(Error::TooSmall {
                key: "models.context_characters",
                least: "4000",
            });
        }
        if models.questions_per_contribution == 0 {
            return Err(Error::TooSmall {
                key: "models.questions_per_contribution",
                least: "1",
            });
        }
        if models.url.is_empty() {
            return Ok(());
        }
        if !is_address(&models.url) {
            return Err(Error::Address { key: "models.url" });
        }
        // The key and unpublished texts would cross the network in plain text.
        if models.url.starts_with("http:") && !is_private_url(&models.url) {
            return Err(Error::Plain { key: "models.url" });
        }
        Ok(())
    }

    /// Returns true if only this machine or a private network reaches the service.
    fn is_private(&self) -> bool {
        if self.server.public_url.is_empty() {
            return is_private(self.server.listen.ip());
        }
        is_private_url(&self.server.public_url)
    }

    fn check_times(&self) -> Result<(), Error> {
        for (key, span) in [
            ("mail.timeout", self.mail.timeout),
            ("models.timeout", self.models.timeout),
            ("models.retry_first", self.models.retry_first),
            ("models.hold_first", self.models.hold_first),
            ("models.hold_most", self.models.hold_most),
            ("objects.attempt", self.objects.attempt),
            ("objects.patience", self.objects.patience),
            ("server.header_timeout", self.server.header_timeout),
            ("server.idle_timeout", self.server.idle_timeout),
            ("collectors.every", self.collectors.every),
            ("collectors.lease", self.collectors.lease),
            ("worker.retry_first", self.worker.retry_first),
            ("worker.retry_most", self.worker.retry_most),
            ("profiles.every", self.profiles.every),
        ] {
            if span.0.is_zero() {
                return Err(Error::Instant { key });
            }
        }
        // These are handed on in whole seconds or hours, so a fraction would be lost silently.
        let seconds = [
            ("database.timeout", self.database.timeout),
            ("limits.body_patience", self.limits.body_patience),
            ("limits.wait", self.limits.wait),
            ("limits.query_timeout", self.limits.query_timeout),
            ("limits.part_urls", self.limits.part_urls),
            ("limits.upload_window", self.limits.upload_window),
            ("pay.dispute_window", self.pay.dispute_window),
            ("pay.quote_window", self.pay.quote_window),
            ("worker.idle", self.worker.idle),
            ("worker.grace", self.worker.grace),
            ("sweeper.every", self.sweeper.every),
            ("sweeper.first", self.sweeper.first),
        ];
        let hours = [
            ("limits.idempotency_window", self.limits.idempotency_window),
            ("limits.price_change_window", self.limits.price_change_window),
        ];
        let seconds = seconds.map(|(key, span)| (key, span, "seconds", 1));
        let hours = hours.map(|(key, span)| (key, span, "hours", 3_600));
        for (key, span, unit, length) in seconds.into_iter().chain(hours) {
            let length = Duration::from_secs(length).as_nanos();
            if span.0.is_zero() || span.0.as_nanos() % length != 0 {
                return Err(Error::Fraction { key, unit });
            }
        }
        if self.limits.wait.0 < MIN_WAIT {
            return Err(Error::TooSmall {
                key: "limits.wait",
                least: "20s",
            });
        }
        // The addresses of a local store are the service's own, which ends them itself.
        let addresses: [(_, HumanDuration, _, _); 2] = [
            ("limits.part_urls", self.limits.part_urls, MAX_PART_URL, "15m"),
            ("limits.upload_window", self.limits.upload_window, MAX_UPLOAD_URL, "7d"),
        ];
        let too_long = addresses.into_iter().find(|(_, span, most, _)| span.0 > *most);
        if let (Backend::S3, Some((key, _, _, most))) = (self.objects.backend, too_long) {
            let most = format!("{most} with tables in a bucket");
            return Err(Error::TooLarge { key, most });
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), Error> {
        let (body, batch, file) = (self.limits.body, self.limits.contribution_body, self.limits.file_body);
        for (key, size, least, limit) in [
            ("limits.contribution_body", batch, 4 << 10, "4KiB"),
            ("limits.file_body", file, 4 << 10, "4KiB"),
            ("limits.body", body, 4 << 10, "4KiB"),
            (
                "limits.bodies_per_operator",
                self.limits.bodies_per_operator,
                1 << 20,
                "1MiB",
            ),
            ("worker.queue", self.worker.queue, 1 << 20, "1MiB"),
        ] {
            if size.0 < least {
                return Err(Error::TooSmall { key, least: limit });
            }
        }
        // A body larger than the memory for bodies would be refused for ever.
        let (own, all) = (self.limits.bodies_per_operator, self.limits.bodies);
        for (key, size, most, at_most) in [
            ("limits.contribution_body", batch, "limits.bodies_per_operator", own),
            ("limits.file_body", file, "limits.bodies_per_operator", own),
            ("limits.body", body, "limits.bodies_per_operator", own),
            ("limits.bodies_per_operator", own, "limits.bodies", all),
        ] {
            if size.0 > at_most.0 {
                return Err(Error::Beyond { key, most });
            }
        }
        // A contribution and the contract of its dataset must fit into one message of the log.
        for (key, size, most) in [
            // A process that reads a file has 512 MiB, of which the file is a part.
            ("limits.file_body", file, 64 << 20),
            ("limits.contribution_body", batch, 8 << 20),
            ("limits.body", body, 4 << 20),
        ] {
            if size.0 > most {
                let most = Size(most).to_string();
                return Err(Error::TooLarge { key, most });
            }
        }
        Ok(())
    }

    fn check_defaults(&self) -> Result<(), Error> {
        let limits = &self.limits;
        let data = (limits.default_page_records, limits.page_records);
        let diff = (limits.default_diff_records, limits.diff_records);
        let query = (limits.default_query_rows, limits.query_rows);
        for (key, most, (default, at_most)) in [
            ("limits.default_page_records", "limits.page_records", data),
            ("limits.default_diff_records", "limits.diff_records", diff),
            ("limits.default_query_rows", "limits.query_rows", query),
        ] {
            if default > at_most {
                return Err(Error::Beyond { key, most });
            }
        }
        Ok(())
    }
}

/// Returns true for a URL whose host is of this machine or of a private network.
fn is_private_url(url: &str) -> bool {
    let url = url.parse::<http::Uri>();
    let Some(host) = url.as_ref().ok().and_then(http::Uri::host) else {
        return false;
    };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    address.map_or_else(
        |_name| host == "localhost" || [".localhost", ".test"].iter().any(|end| host.ends_with(end)),
        is_private,
    )
}

/// Returns true for an address of this machine or of a private network.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

/// Returns true if clients can reach a service at the address: a scheme of HTTP, a host, and no query.
fn is_address(url: &str) -> bool {
    url.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.query().is_none()
    })
}
