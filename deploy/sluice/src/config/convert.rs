//! Conversions of the configuration into the settings of each package.

use std::net::SocketAddr;

use messages::{APPEAL_FORMAT, BASE_FORMAT, SUBMISSION_FORMAT};
use types::money::MicroUsdc;

use super::{Compaction, Config, Log, LogBackend, Worker};

impl Config {
    /// Returns the settings of the API for a service that listens on `address`.
    pub fn api(&self, address: SocketAddr) -> api::Config {
        // Paths are appended with a slash of their own.
        let public_url = match self.server.public_url.trim_end_matches('/') {
            "" => format!("http://{address}"),
            url => url.to_owned(),
        };
        let terms_url = match self.terms.url.as_str() {
            "" => format!("{public_url}/terms"),
            url => url.to_owned(),
        };
        api::Config {
            public_url,
            trusted_proxies: self.server.trusted_proxies,
            terms_version: self.terms.version.clone(),
            terms_url,
            signup_open: self.signup.open,
            mails_per_day: self.mail.per_day,
            administrator: Some(self.mail.administrator.clone()).filter(|address| !address.is_empty()),
            write_format: self.write_format(),
            has_second_judge: !self.models.appeal.is_empty() && self.write_format() >= APPEAL_FORMAT,
        }
    }

    /// Returns the latest format of submissions that is written.
    fn write_format(&self) -> u32 {
        match (self.messages.write_format, self.log.backend) {
            // The process that writes the embedded log is the one that reads it.
            (0, LogBackend::Embedded) => SUBMISSION_FORMAT,
            (0, LogBackend::Kafka) => BASE_FORMAT,
            (format, _) => format,
        }
    }
}

impl Config {
    /// Returns the prices and free figures of the platform.
    pub fn tariff(&self) -> ::pay::Tariff {
        let pay = &self.pay;
        ::pay::Tariff {
            // Addresses are stored in lower case.
            asset: format!("{}/{}", pay.network, pay.asset.to_lowercase()),
            fee: pay.fee.clone(),
            pack: MicroUsdc(pay.pack),
            egress_block: MicroUsdc(pay.egress_block),
            storage_block_day: MicroUsdc(pay.storage_block_day),
            free_egress_bytes: self.limits.egress_per_operator.0,
            platform_egress_bytes: self.limits.platform_egress_per_month.0,
            given_at_sign_up: MicroUsdc(pay.given_at_sign_up),
            dispute_window_seconds: pay.dispute_window.seconds(),
            quote_seconds: pay.quote_window.seconds(),
            payout_threshold: MicroUsdc(pay.payout_threshold),
        }
    }
}

impl Log {
    /// Returns the settings of the embedded event log.
    pub fn options(&self) -> eventlog::EmbeddedOptions {
        eventlog::EmbeddedOptions {
            partitions: self.partitions.get(),
            retain: self.retain,
        }
    }

    /// Returns the settings of an event log on Kafka.
    ///
    /// # Errors
    /// A property that is not `name=value`.
    #[cfg(feature = "kafka")]
    pub fn kafka(&self) -> Result<eventlog::kafka::KafkaOptions, String> {
        // With line ends as separators a value may contain `;`.
        let divider = if self.properties.contains('\n') { '\n' } else { ';' };
        let lines = self
            .properties
            .split(divider)
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let properties = lines.map(|line| {
            let (name, value) = line
                .split_once('=')
                .ok_or("`log.properties` must have name=value in every place")?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        });
        Ok(eventlog::kafka::KafkaOptions {
            brokers: self.brokers.clone(),
            prefix: self.prefix.clone(),
            partitions: self.partitions.get(),
            replication: self.replication,
            min_in_sync: self.min_in_sync,
            retention: self.retention.0,
            instance: Some(self.instance.clone()).filter(|instance| !instance.is_empty()),
            session: self.session.0,
            patience: self.patience.0,
            delivery: self.delivery.0,
            properties: properties.collect::<Result<_, String>>()?,
            ..eventlog::kafka::KafkaOptions::new(&self.brokers)
        })
    }
}

impl Worker {
    /// Returns the settings of a worker in the consumer group `group`.
    pub fn of_group(&self, group: &str) -> pipelines::Config {
        pipelines::Config {
            group: group.to_owned(),
            judged_ahead: self.judged_ahead.get(),
            writer_bytes: self.dataset_queue.bytes(),
            queue_bytes: self.queue.bytes(),
            idle_seconds: self.idle.0.as_secs(),
            retry_first_ms: self.retry_first.millis(),
            retry_most_ms: self.retry_most.millis(),
            grace_seconds: self.grace.0.as_secs(),
        }
    }
}

impl Compaction {
    /// Returns the compaction policy, or `None` if compaction is disabled.
    pub fn policy(&self) -> Option<catalog::Policy> {
        self.enabled
            .then(|| catalog::Policy::new(self.fan_in.get(), self.target.0))
    }
}
