//! Tests of the order of the sources and of the rules.

use std::collections::HashMap;

use std::time::Duration;

use super::*;

/// Loads with this file text, these environment variables and these flags.
fn load(file: Option<&str>, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<LoadedConfig, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = file.map(|text| {
        let path = folder.path().join("sluice.conf");
        std::fs::write(&path, text).unwrap();
        path
    });
    let variables: HashMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let flags: Vec<_> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    LoadedConfig::merge(path.as_deref(), environment().source(Some(variables)), &flags)
}

/// The error with its causes.
fn message_of(refused: Result<LoadedConfig, Error>) -> String {
    format!("{:#}", anyhow::Error::from(refused.unwrap_err()))
}

#[test]
fn the_defaults_are_the_limits_of_the_interface() {
    let config = load(None, &[], &[]).unwrap().config;
    assert_eq!(config.limits.calls_per_ip_per_minute.get(), 300);
    assert_eq!(config.limits.public_contributions_per_day, 200);
    assert_eq!(config.limits.agents_per_operator, 5);
    assert_eq!(config.limits.active_projects_per_operator, 3);
    assert_eq!(config.limits.agent_registrations_per_ip_per_hour, 20);
    assert_eq!(config.limits.records_per_contribution.get(), 500);
    assert_eq!(config.limits.idempotency_window.0, Duration::from_hours(24));
    assert_eq!(config.limits.contribution_body.0, 4 << 20);
    assert!(
        config.limits.storage_per_operator.0 > 3 * config.limits.upload.0,
        "the largest uploads do not fit beside what an operator stores"
    );
    assert!(
        config.server.drain_timeout.0 > config.limits.wait.0,
        "a waiting request outlasts a stop"
    );
}

#[test]
fn a_key_is_known_by_its_old_name_and_the_new_one_wins() {
    let file = Some("[worker]\nends = 5\nalone = \"7s\"\nisolation_timeout = \"8s\"\n");
    let loaded = load(file, &[], &[]).unwrap();
    assert_eq!(loaded.config.worker.max_strikes, 5);
    assert_eq!(loaded.config.worker.isolation_timeout.0, Duration::from_secs(8));
    assert_eq!(
        loaded.renamed,
        [("alone", "isolation_timeout"), ("ends", "max_strikes")]
    );
    assert!(loaded.show().contains("\nmax_strikes = 5\n"));
    let loaded = load(None, &[("SLUICE__WORKER__ENDS", "6")], &[]).unwrap();
    assert_eq!(loaded.config.worker.max_strikes, 6);
    assert!(load(None, &[], &[]).unwrap().renamed.is_empty());
}

#[test]
fn flags_win_over_the_environment_over_the_file_over_the_defaults() {
    let file = Some("[limits]\nagents_per_operator = 6\nactive_projects_per_operator = 6\n[log]\npartitions = 6\n");
    let variables = [
        ("SLUICE__LIMITS__AGENTS_PER_OPERATOR", "7"),
        ("SLUICE__LOG__PARTITIONS", "7"),
        ("SLUICE__CLOCK__OFFSET", "8d"),
        ("SLUICE_LOG", "another program's"),
        ("HOME", "/root"),
    ];
    let config = load(file, &variables, &[("log.partitions", "8"), ("data.dir", "/tmp/8")])
        .unwrap()
        .config;
    assert_eq!(config.limits.public_contributions_per_day, 200);
    assert_eq!(config.limits.active_projects_per_operator, 6);
    assert_eq!(config.limits.agents_per_operator, 7);
    assert_eq!(config.log.partitions.get(), 8);
    assert_eq!(config.clock.offset.0, Duration::from_hours(8 * 24));
    assert_eq!(config.data.dir, PathBuf::from("/tmp/8"));
}

#[test]
fn unknown_keys_are_refused_by_name() {
    for (file, variable, name) in [
        (Some("[limits]\nagents = 1\n"), None, "`limits.agents`"),
        (Some("top = 1\n"), None, "`top`"),
        (None, Some("SLUICE__LIMITS__AGENTS"), "`limits.agents`"),
        (None, Some("SLUICE__SERVER__LISTEN__PORT"), "server.listen"),
    ] {
        let variables: Vec<_> = variable.map(|name| (name, "1")).into_iter().collect();
        let message = message_of(load(file, &variables, &[]));
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn values_that_do_not_fit_are_refused_by_name() {
    for (name, value, expected) in [
        (
            "SLUICE__LIMITS__AGENTS_PER_OPERATOR",
            "many",
            "limits.agents_per_operator",
        ),
        (
            "SLUICE__LIMITS__AGENTS_PER_OPERATOR",
            "-1",
            "limits.agents_per_operator",
        ),
        ("SLUICE__LOG__PARTITIONS", "0", "log.partitions"),
        ("SLUICE__CLOCK__OFFSET", "8", "is not a duration"),
        ("SLUICE__LIMITS__BODY", "1MB", "is not a size"),
        ("SLUICE__SERVER__LISTEN", "localhost", "server.listen"),
        ("SLUICE__TELEMETRY__FORMAT", "xml", "telemetry.format"),
        ("SLUICE__TELEMETRY__METRICS", "9090", "is not an address and a port"),
        (
            "SLUICE__LIMITS__WAIT",
            "1500ms",
            "`limits.wait` must be a whole number of seconds",
        ),
        ("SLUICE__LIMITS__IDEMPOTENCY_WINDOW", "90m", "whole number of hours"),
        ("SLUICE__OBJECTS__BACKEND", "tape", "objects.backend"),
        ("SLUICE__LIMITS__BODY_PATIENCE", "0s", "whole number of seconds"),
        ("SLUICE__PAY__DISPUTE_WINDOW", "500ms", "whole number of seconds"),
        ("SLUICE__PAY__QUOTE_WINDOW", "1500ms", "whole number of seconds"),
        ("SLUICE__LIMITS__BODIES_PER_OPERATOR", "512KiB", "at least 1MiB"),
        (
            "SLUICE__LIMITS__BODIES_PER_OPERATOR",
            "3MiB",
            "`limits.contribution_body` must not be more",
        ),
        (
            "SLUICE__LIMITS__BODIES",
            "63MiB",
            "must not be more than `limits.bodies`",
        ),
        ("SLUICE__OBJECTS__PATIENCE", "0s", "`objects.patience` must be at least"),
    ] {
        let message = message_of(load(None, &[(name, value)], &[]));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn amounts_and_times_of_money_are_bounded() {
    let name = |key: &str| format!("SLUICE__PAY__{}", key.to_uppercase());
    for (key, accepted, low, high) in [
        ("pack", "10000", "9999", "1000000001"),
        ("egress_block", "1", "0", "1000000001"),
        ("storage_block_day", "0", "-1", "1000000001"),
        ("given_at_sign_up", "0", "-1", "1000000001"),
        ("payout_threshold", "10000", "9999", "9223372036854775807"),
        ("payout_every", "1ms", "0s", "32d"),
        ("dispute_window", "1s", "0s", "367d"),
        ("quote_window", "24h", "0s", "25h"),
    ] {
        let name = name(key);
        assert!(load(None, &[(&name, accepted)], &[]).is_ok(), "{key} = {accepted}");
        for value in [low, high] {
            let message = message_of(load(None, &[(&name, value)], &[]));
            assert!(message.contains(&format!("`pay.{key}` must be")), "{value}: {message}");
        }
    }
    let negative = message_of(load(None, &[("SLUICE__PAY__PACK", "-1")], &[]));
    assert!(negative.contains("`pay.pack` must be at least 10000"), "{negative}");
}

#[test]
fn the_url_of_the_node_is_not_shown() {
    let variables = [("SLUICE__PAY__RPC_URL", "https://node.example/v1/hush")];
    let loaded = load(None, &variables, &[]).unwrap();
    assert_eq!(loaded.config.pay.rpc_url, "https://node.example/v1/hush");
    let shown = loaded.show();
    assert!(shown.contains("rpc_url = \"…\""), "{shown}");
    assert!(!shown.contains("hush") && !format!("{:?}", loaded.config).contains("hush"));
    assert!(load(None, &[], &[]).unwrap().show().contains("rpc_url = \"\""));
}

#[test]
fn the_password_of_the_cache_is_not_shown() {
    let loaded = load(None, &[("SLUICE__CACHE__URL", "redis://:hush@localhost")], &[]).unwrap();
    assert_eq!(loaded.config.cache.url, "redis://:hush@localhost");
    assert!(!loaded.show().contains("hush") && !format!("{:?}", loaded.config).contains("hush"));
}

#[test]
fn a_missing_file_is_an_error() {
    let missing = LoadedConfig::merge(Some(Path::new("/nonexistent/sluice.toml")), environment(), &[]);
    assert!(message_of(missing).contains("/nonexistent/sluice.toml"));
}

#[test]
fn what_is_shown_can_be_loaded_again() {
    let variables = [
        ("SLUICE__LIMITS__AGENTS_PER_OPERATOR", "7"),
        ("SLUICE__TERMS__URL", "https://a/\"b\""),
    ];
    let shown = load(None, &variables, &[]).unwrap().show();
    let again = load(Some(&shown), &[], &[]).unwrap();
    assert_eq!(again.config.limits.agents_per_operator, 7);
    assert_eq!(again.config.terms.url, "https://a/\"b\"");
    assert_eq!(again.show().lines().count(), DEFAULT_CONFIG.lines().count());
}

#[test]
fn the_password_of_the_database_is_not_shown() {
    let variables = [("SLUICE__DATABASE__URL", "postgres://sluice:hush@db.example/sluice")];
    let loaded = load(None, &variables, &[]).unwrap();
    assert_eq!(loaded.config.database.url, "postgres://sluice:hush@db.example/sluice");
    assert!(!loaded.show().contains("hush"));
    assert!(!format!("{:?}", loaded.config).contains("hush"));
    assert!(load(None, &[], &[]).unwrap().show().contains("\nurl = \"\"\n"));
}

#[test]
fn the_secret_of_the_store_is_not_shown() {
    let variables = [
        ("SLUICE__OBJECTS__SECRET_KEY", "hush"),
        ("SLUICE__OBJECTS__ACCESS_KEY", "AKID"),
    ];
    let loaded = load(None, &variables, &[]).unwrap();
    assert_eq!(loaded.config.objects.secret_key, "hush");
    let shown = loaded.show();
    assert!(
        shown.contains("secret_key = \"…\"") && shown.contains("access_key = \"AKID\""),
        "{shown}"
    );
    assert!(!shown.contains("hush") && !format!("{:?}", loaded.config).contains("hush"));
}

#[cfg(feature = "kafka")]
#[test]
fn properties_of_kafka_are_pairs_and_never_shown() {
    let of = |text: &str| load(None, &[("SLUICE__LOG__PROPERTIES", text)], &[]).unwrap();
    let loaded = of("security.protocol=SASL_SSL; sasl.password=a=b");
    let properties = loaded.config.log.kafka().unwrap().properties;
    assert_eq!(properties["security.protocol"], "SASL_SSL");
    assert_eq!(properties["sasl.password"], "a=b");
    assert!(!loaded.show().contains("sasl.password") && !format!("{:?}", loaded.config.log).contains("a=b"));
    let lines = of("sasl.password=a;b\nsasl.username=c\n")
        .config
        .log
        .kafka()
        .unwrap()
        .properties;
    assert_eq!(lines["sasl.password"], "a;b");
    assert!(of("sasl.password").config.log.kafka().is_err());
}

#[test]
fn a_body_is_not_larger_than_the_log_takes() {
    for (name, most, key) in [
        ("SLUICE__LIMITS__CONTRIBUTION_BODY", 8, "limits.contribution_body"),
        ("SLUICE__LIMITS__BODY", 4, "limits.body"),
    ] {
        let of = |mib: u64| load(None, &[(name, &format!("{mib}MiB"))], &[]);
        assert!(of(most).is_ok());
        assert_eq!(message_of(of(most + 1)), format!("`{key}` must be at most {most}MiB"));
    }
}

#[test]
fn what_would_fail_later_is_refused() {
    for (variables, expected) in [
        (
            &[("SLUICE__SERVER__PUBLIC_URL", "example.org")][..],
            "`server.public_url` must begin with http",
        ),
        (
            &[("SLUICE__SERVER__PUBLIC_URL", "ftp://example.org")],
            "`server.public_url` must begin with http",
        ),
        (
            &[("SLUICE__SERVER__PUBLIC_URL", "http://exa mple")],
            "`server.public_url` must begin with http",
        ),
        (
            &[("SLUICE__MAIL__ADMINISTRATOR", "admin")],
            "`mail.administrator` must be one address of mail",
        ),
        (
            &[("SLUICE__MAIL__ADMINISTRATOR", "a@example.org, b@example.org")],
            "`mail.administrator` must be one address of mail",
        ),
        (&[("SLUICE__LIMITS__BODY", "0B")], "`limits.body` must be at least 4KiB"),
        (
            &[("SLUICE__WORKER__QUEUE", "3B")],
            "`worker.queue` must be at least 1MiB",
        ),
        (
            &[("SLUICE__LIMITS__DEFAULT_PAGE_RECORDS", "1001")],
            "`limits.default_page_records` must not be more than `limits.page_records`",
        ),
        (
            &[("SLUICE__MESSAGES__WRITE_FORMAT", "3")],
            "`messages.write_format` must be at most 2",
        ),
        (
            &[("SLUICE__OBJECTS__BACKEND", "s3"), ("SLUICE__LIMITS__PART_URLS", "8d")],
            "`limits.part_urls` must be at most 15m with tables in a bucket",
        ),
        (
            &[("SLUICE__MODELS__QUERY_PREFIX", "query: ")],
            "`models.query_prefix` needs `models.embeddings`",
        ),
        (
            &[("SLUICE__MODELS__DOCUMENT_PREFIX", "passage: ")],
            "`models.document_prefix` needs `models.embeddings`",
        ),
    ] {
        let refused = message_of(load(None, variables, &[]));
        assert!(refused.starts_with(expected), "{refused}");
    }
    for variable in [
        ("SLUICE__SERVER__PUBLIC_URL", "https://example.org/data/"),
        ("SLUICE__LIMITS__PART_URLS", "8d"),
        ("SLUICE__MAIL__ADMINISTRATOR", "admin@example.org"),
    ] {
        assert!(load(None, &[variable], &[]).is_ok());
    }
}

#[test]
fn what_is_too_small_to_work_is_refused() {
    let refused = message_of(load(None, &[("SLUICE__COMPACTION__FAN_IN", "1")], &[]));
    assert_eq!(refused, "`compaction.fan_in` must be at least 2");
    let refused = message_of(load(None, &[("SLUICE__LIMITS__WAIT", "19s")], &[]));
    assert_eq!(refused, "`limits.wait` must be at least 20s");
    let off = load(None, &[("SLUICE__COMPACTION__ENABLED", "false")], &[])
        .unwrap()
        .config;
    assert_eq!(off.compaction.policy(), None);
    assert!(load(None, &[], &[]).unwrap().config.compaction.policy().is_some());
}

#[test]
fn format_2_is_written_where_one_process_has_all_roles_or_it_is_asked_for() {
    let written = |variables: &[(&str, &str)]| {
        let config = load(None, variables, &[]).unwrap().config;
        config.api(config.server.listen).write_format
    };
    let kafka = ("SLUICE__LOG__BACKEND", "kafka");
    for (variables, expected) in [
        (&[][..], 2),
        (&[kafka], 1),
        (&[("SLUICE__MESSAGES__WRITE_FORMAT", "1")], 1),
        (&[kafka, ("SLUICE__MESSAGES__WRITE_FORMAT", "2")], 2),
    ] {
        assert_eq!(written(variables), expected, "{variables:?}");
    }
}
