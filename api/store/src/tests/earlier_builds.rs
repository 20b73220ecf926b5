//! Databases of earlier builds: what was in them is there after the migrations.

use super::*;

/// Statements that undo the migrations from 8 on, which both engines take.
const UNDO_ACCOUNTS_AND_FLOW: [&str; 184] = [
    "DROP INDEX unit_ratings_of_operator",
    "DROP INDEX unit_marks_by_operator",
    "DELETE FROM _sqlx_migrations WHERE version = 38",
    "DROP INDEX disputes_of_seller",
    "DROP INDEX disputes_of_buyer",
    "ALTER TABLE disputes DROP COLUMN seller_operator",
    "ALTER TABLE disputes DROP COLUMN buyer_operator",
    "ALTER TABLE disputes DROP COLUMN opened_agent",
    "ALTER TABLE disputes DROP COLUMN answer_due",
    "ALTER TABLE disputes DROP COLUMN reply",
    "ALTER TABLE disputes DROP COLUMN replied_at",
    "DROP INDEX contributors_of_agent",
    "DROP INDEX chains_of_agent",
    "DROP INDEX activity_of_agent",
    "DELETE FROM _sqlx_migrations WHERE version = 37",
    "DROP TABLE figures_days",
    "DROP INDEX operators_by_name",
    "DROP INDEX operators_of_role",
    "DROP INDEX operators_of_day",
    "DROP INDEX sales_of_day",
    "DROP INDEX versions_of_day",
    "DROP INDEX jobs_failing",
    "DROP INDEX invites_newest",
    "DROP INDEX invite_requests_oldest",
    "DROP INDEX takedowns_down",
    "DROP INDEX takedowns_answered",
    "DROP INDEX reports_of_owner",
    "DROP INDEX reports_of_reporter",
    "DROP INDEX reports_decided",
    "DROP INDEX reports_decided_so",
    "ALTER TABLE invites DROP COLUMN invited_by",
    "ALTER TABLE takedowns DROP COLUMN restored_note",
    "ALTER TABLE reports DROP COLUMN owner_id",
    "ALTER TABLE reports DROP COLUMN note",
    "ALTER TABLE reports DROP COLUMN decided_by",
    "DELETE FROM _sqlx_migrations WHERE version = 36",
    "DROP TABLE email_changes",
    "DROP INDEX comments_of_operator",
    "DROP INDEX sales_of_item_by_time",
    "DROP INDEX sales_of_seller_by_id",
    "ALTER TABLE operators DROP COLUMN profile_hidden",
    "ALTER TABLE operators DROP COLUMN muted_letters",
    "ALTER TABLE operators DROP COLUMN closed_at",
    "DELETE FROM _sqlx_migrations WHERE version = 35",
    "DROP INDEX sales_of_seller_by_time",
    "DROP INDEX payouts_of_operator",
    "DROP INDEX disputes_of_sale",
    "DROP TABLE egress_readers",
    "ALTER TABLE operators DROP COLUMN steps_hidden_at",
    "DELETE FROM _sqlx_migrations WHERE version = 34",
    "DROP TABLE approvals",
    "DROP TABLE spends",
    "DROP TABLE spend_used",
    "DROP TABLE spend_limits",
    "ALTER TABLE sales DROP COLUMN approval_id",
    "ALTER TABLE sales DROP COLUMN receipt",
    "ALTER TABLE oauth_codes DROP COLUMN per_month",
    "ALTER TABLE oauth_codes DROP COLUMN approve_above",
    "DELETE FROM service_state WHERE name = 'spends'",
    "DELETE FROM _sqlx_migrations WHERE version = 31",
    "DROP TABLE profile_work",
    "DROP TABLE profiles",
    "ALTER TABLE projects DROP COLUMN preview_rows",
    "DELETE FROM _sqlx_migrations WHERE version = 30",
    "DROP INDEX projects_deleted",
    "ALTER TABLE projects DROP COLUMN deleted_at",
    "DELETE FROM _sqlx_migrations WHERE version = 29",
    "DROP TABLE login_tries",
    "DROP TABLE logins",
    "ALTER TABLE agent_keys DROP COLUMN label",
    "DELETE FROM _sqlx_migrations WHERE version = 28",
    "DROP TABLE unit_appeals",
    "DROP TABLE unit_marks",
    "DROP INDEX payments_of_packs",
    "ALTER TABLE operators DROP COLUMN trusted_at",
    "ALTER TABLE chains DROP COLUMN confirmed_count",
    "ALTER TABLE chains DROP COLUMN stale_count",
    "ALTER TABLE chains DROP COLUMN incorrect_count",
    "ALTER TABLE chains DROP COLUMN confirmed_at",
    "DELETE FROM _sqlx_migrations WHERE version = 27",
    "ALTER TABLE units DROP COLUMN embedder",
    "ALTER TABLE units DROP COLUMN near_unit",
    "DELETE FROM _sqlx_migrations WHERE version = 26",
    "DELETE FROM _sqlx_migrations WHERE version = 25",
    "DROP TABLE call_keys",
    "DELETE FROM _sqlx_migrations WHERE version = 24",
    "DROP TABLE points_batches",
    "DROP TABLE dataset_readers",
    "DROP INDEX projects_latest",
    "CREATE INDEX projects_newest ON projects (created_at, id)",
    "DELETE FROM service_state WHERE name = 'prices_in_force'",
    "DELETE FROM _sqlx_migrations WHERE version = 23",
    "DROP TABLE consents",
    "DROP INDEX sales_of_buyer_and_item",
    "DROP INDEX operators_by_mailbox",
    "ALTER TABLE operators DROP COLUMN mailbox",
    "DELETE FROM _sqlx_migrations WHERE version = 22",
    "DROP TABLE ledger_seals",
    "DROP INDEX ledger_events_of_day",
    "CREATE INDEX ledger_events_of_month ON ledger_events (month, at)",
    "DELETE FROM _sqlx_migrations WHERE version = 20",
    "DROP TABLE summaries",
    "DELETE FROM _sqlx_migrations WHERE version = 19",
    "DROP INDEX operators_of_payout",
    "DROP INDEX operators_of_next_payout",
    "DELETE FROM _sqlx_migrations WHERE version = 18",
    "DROP TABLE activity",
    "DROP TABLE takedowns",
    "DROP TABLE report_latest",
    "DROP TABLE reports",
    "DROP INDEX entitlements_of_item",
    "DROP INDEX sales_of_pair",
    "DROP INDEX agents_by_name",
    "ALTER TABLE operators DROP COLUMN role",
    "ALTER TABLE projects DROP COLUMN taken_down_at",
    "ALTER TABLE projects DROP COLUMN taken_down_reason",
    "ALTER TABLE agents DROP COLUMN taken_down_at",
    "DELETE FROM _sqlx_migrations WHERE version = 17",
    "DROP TABLE request_matches",
    "DROP TABLE answer_items",
    "DROP TABLE comment_edits",
    "DROP TABLE requests",
    "DELETE FROM _sqlx_migrations WHERE version = 15",
    "DROP TABLE collector_runs",
    "DROP TABLE collectors",
    "DELETE FROM _sqlx_migrations WHERE version = 16",
    "DROP TABLE allowances",
    "CREATE TABLE allowances
         (operator_id TEXT NOT NULL, day BIGINT NOT NULL, used BIGINT NOT NULL, PRIMARY KEY (operator_id, day))",
    "DROP TABLE points_exclusions",
    "DROP TABLE points_days",
    "DROP TABLE points_agents",
    "DROP TABLE points_events",
    "DROP TABLE comments",
    "DROP TABLE unit_ratings",
    "DROP TABLE rating_permits",
    "DROP TABLE unit_reads",
    "DROP TABLE unit_vectors",
    "DROP TABLE unit_validations",
    "DROP TABLE unit_outbox",
    "DROP TABLE units",
    "DROP TABLE chains",
    "DROP TABLE counters",
    "DROP TABLE search_changes",
    "DROP TABLE service_state",
    "ALTER TABLE dead_letters DROP COLUMN unit_id",
    "DELETE FROM _sqlx_migrations WHERE version = 13",
    "DROP INDEX contributions_of_operator",
    "DROP INDEX contributions_pending",
    "DROP INDEX contributions_unmerged",
    "DROP INDEX uploads_of_project",
    "DELETE FROM _sqlx_migrations WHERE version = 12",
    "DROP TABLE oauth_assertions",
    "DROP TABLE oauth_access_tokens",
    "DROP TABLE oauth_refresh_tokens",
    "DROP TABLE oauth_codes",
    "DROP TABLE oauth_connections",
    "DROP TABLE oauth_clients",
    "DROP TABLE audit",
    "DROP TABLE limit_counters",
    "DROP TABLE jobs",
    "DROP TABLE mail_days",
    "DROP TABLE sessions",
    "DROP TABLE mail_links",
    "DROP TABLE invite_requests",
    "DROP TABLE invites",
    "DROP TABLE claims",
    "DROP TABLE claim_codes",
    "DROP TABLE agent_names",
    "DROP TABLE agent_keys",
    "DROP INDEX operator_tokens_of_operator",
    "DROP INDEX operators_unverified",
    "ALTER TABLE agents DROP COLUMN removed_at",
    "ALTER TABLE operator_tokens DROP COLUMN label",
    "ALTER TABLE operators DROP COLUMN verified_at",
    "ALTER TABLE operators DROP COLUMN adult_stated_at",
    "ALTER TABLE operators DROP COLUMN payout_address",
    "ALTER TABLE operators DROP COLUMN payout_changed_at",
    "ALTER TABLE operators DROP COLUMN payout_next_address",
    "ALTER TABLE operators DROP COLUMN payout_next_at",
    "ALTER TABLE operators DROP COLUMN payout_proved_at",
    "DELETE FROM _sqlx_migrations WHERE version = 11",
    "DELETE FROM _sqlx_migrations WHERE version = 10",
    "DELETE FROM _sqlx_migrations WHERE version = 9",
    "DELETE FROM _sqlx_migrations WHERE version = 8",
];

/// Undoes migrations, with what only `PostgreSQL` has of them.
async fn undo(pool: &sqlx::AnyPool, statements: impl IntoIterator<Item = &'static str>) {
    let mut connection = pool.acquire().await.unwrap();
    if connection.backend_name() == "PostgreSQL" {
        sqlx::query("DROP FUNCTION spends_fixed() CASCADE")
            .execute(&mut *connection)
            .await
            .unwrap();
    }
    for statement in statements {
        sqlx::query(statement).execute(&mut *connection).await.unwrap();
    }
}

#[tokio::test]
async fn vectors_of_whole_texts_stay_as_the_first_piece() {
    let (url, _folder) = fresh_file();
    Store::connect(&url, Options::default()).await.unwrap().close().await;
    let pool = sqlx::AnyPool::connect(&url).await.unwrap();
    for earlier in [
        "DROP TABLE unit_vectors",
        "CREATE TABLE unit_vectors (version_id TEXT NOT NULL PRIMARY KEY, embedder TEXT NOT NULL,
         signature BLOB NOT NULL, vector BLOB NOT NULL)",
        "INSERT INTO unit_vectors VALUES ('one', 'm', x'01', x'00ff07')",
        "DELETE FROM _sqlx_migrations WHERE version = 25",
    ] {
        sqlx::query(earlier).execute(&pool).await.unwrap();
    }
    pool.close().await;
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let kept = store.searching().vectors("m", &["one".to_owned()]).await.unwrap();
    let expected = StoredVector {
        item: "one".to_owned(),
        chunk: 0,
        hash: vec![1],
        vector: vec![0, 255, 7],
    };
    assert_eq!(kept, [expected]);
}

#[tokio::test]
async fn who_contributed_before_there_were_sums_is_counted() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let world = World::new(&store).await;
    let apply = async |store: &Store, versions: [u64; 2]| {
        let ids = world.submitted(store, versions.len()).await;
        let outcomes = ids
            .iter()
            .zip(versions)
            .map(|(id, version)| outcome(*id, merged(version)));
        for applied in store.outcomes_apply(outcomes.collect()).await.unwrap() {
            assert!(applied.changed);
        }
    };
    apply(&store, [1, 2]).await;
    store.close().await;
    let pool = sqlx::AnyPool::connect(&url).await.unwrap();
    let earlier = [
        "DROP TABLE disputes",
        "DROP TABLE sales",
        "DROP TABLE entitlements",
        "DROP TABLE entitlement_generation",
        "DROP TABLE payment_ids",
        "DROP TABLE payments",
        "DROP TABLE payouts",
        "DROP TABLE ledger_transfers",
        "DROP TABLE ledger_openings",
        "DROP TABLE ledger_events",
        "DROP TABLE ledger_accounts",
        "DROP TABLE item_prices",
        "DROP TABLE storage_days",
        "DROP TABLE egress_months",
        "DROP TABLE platform_months",
        "DROP TABLE test_authorizations",
        "DROP TABLE test_wallets",
        "DROP TRIGGER versions_contributors",
        "DROP TABLE contributors",
        "DROP INDEX uploads_held",
        "DROP TABLE losses",
        "DROP TABLE lost_versions",
        "ALTER TABLE contributions DROP COLUMN loss",
        "DELETE FROM _sqlx_migrations WHERE version >= 5",
    ];
    undo(&pool, UNDO_ACCOUNTS_AND_FLOW.into_iter().chain(earlier)).await;
    pool.close().await;
    for schema in [Schema::Current, Schema::Made] {
        let options = Options {
            schema,
            ..Options::default()
        };
        let error = Store::connect(&url, options).await.unwrap_err();
        assert!(matches!(error, Error::Outdated), "{error:?}");
    }
    let store = Store::connect(&url, Options::default()).await.unwrap();
    apply(&store, [3, 4]).await;
    let contributors = store.project_contributors(world.project, 10).await.unwrap();
    assert_eq!((contributors[0].contributions, contributors[0].accepted), (4, 8));
    assert_eq!(store.project_counts(world.project).await.unwrap().versions, 4);
}

/// Names that were stored with more look-alikes folded: after the migration those that only resemble them are free, and
/// those that look alike are taken.
async fn names_are_folded_anew(url: &str) {
    let store = Store::connect(url, Options::default()).await.unwrap();
    let operator = fixture::operator(&store, "ada@example.org").await;
    // The values that the earlier build stored for each name.
    for (name, skeleton) in [
        ("Fiat-1", "flat-l"),
        ("B0b-Tail", "bob-tall"),
        ("modern-vv", "modem-w"),
        ("x", "x"),
    ] {
        let new = NewAgent {
            skeleton: skeleton.to_owned(),
            ..fixture::new_agent(operator, name)
        };
        let created = store.agent_create(new, u32::MAX).await.unwrap();
        assert_eq!(created, AgentCreated::Created);
    }
    store.close().await;
    sqlx::any::install_default_drivers();
    let pool = sqlx::AnyPool::connect(url).await.unwrap();
    let earlier = ["DELETE FROM _sqlx_migrations WHERE version = 6"];
    undo(&pool, UNDO_ACCOUNTS_AND_FLOW.into_iter().chain(earlier)).await;
    pool.close().await;
    let store = Store::connect(url, Options::default()).await.unwrap();
    for (skeleton, expected) in [
        ("fiat-l", AgentCreated::NameTaken),
        ("bob-tail", AgentCreated::NameTaken),
        ("modem-vv", AgentCreated::NameTaken),
        ("x", AgentCreated::NameTaken),
        ("flat-l", AgentCreated::Created),
        ("bob-tall", AgentCreated::Created),
        ("modem-w", AgentCreated::Created),
    ] {
        let new = fixture::new_agent(operator, skeleton);
        assert_eq!(store.agent_create(new, u32::MAX).await.unwrap(), expected, "{skeleton}");
    }
}

#[tokio::test]
async fn names_of_an_earlier_build_are_folded_anew() {
    let (url, _folder) = fresh_file();
    names_are_folded_anew(&url).await;
    #[cfg(feature = "postgres")]
    if let Some((url, ())) = server::fresh() {
        names_are_folded_anew(&url).await;
    }
}

/// Operators of an earlier build with two spellings of a mailbox: after the migration both sign in, and a third spelling is
/// taken.
async fn pairs_of_a_mailbox_keep_signing_in(url: &str) {
    let store = Store::connect(url, Options::default()).await.unwrap();
    let pair = [
        "a.da+tides@googlemail.com",
        "Ada@gmail.com",
        "eve+x@example.org",
        "plain",
        "@y",
        "+z@example.org",
    ];
    for email in pair {
        fixture::operator(&store, email).await;
    }
    store.close().await;
    sqlx::any::install_default_drivers();
    let pool = sqlx::AnyPool::connect(url).await.unwrap();
    // Those of the migrations from 22 on.
    let since_mailboxes = |earlier: &&str| *earlier != "DROP TABLE ledger_seals";
    undo(&pool, UNDO_ACCOUNTS_AND_FLOW.into_iter().take_while(since_mailboxes)).await;
    pool.close().await;
    let store = Store::connect(url, Options::default()).await.unwrap();
    for email in pair {
        assert!(conformance::sign_ups::gets_a_link(&store, email).await, "{email}");
    }
    for (email, is_taken) in [
        ("ad.a@gmail.com", true),
        ("EVE@example.org", true),
        ("z@example.org", false),
        ("e.ve@example.org", false),
    ] {
        let made = conformance::sign_ups::signs_up(&store, email).await;
        assert_eq!(made == SignedUp::EmailTaken, is_taken, "{email}");
    }
}

#[tokio::test]
async fn pairs_of_a_mailbox_of_an_earlier_build_keep_signing_in() {
    let (url, _folder) = fresh_file();
    pairs_of_a_mailbox_keep_signing_in(&url).await;
    #[cfg(feature = "postgres")]
    if let Some((url, ())) = server::fresh() {
        pairs_of_a_mailbox_keep_signing_in(&url).await;
    }
}

/// Operators, tokens and keys of an earlier build: after the migration they are verified and valid.
async fn accounts_of_an_earlier_build_are_active(url: &str) {
    let store = Store::connect(url, Options::default()).await.unwrap();
    let operator = fixture::new_operator("ada@example.org");
    let agent = fixture::new_agent(operator.id, "Tide-1");
    let (id, token, key) = (operator.id, operator.token_hash, agent.key_hash);
    assert_eq!(store.operator_create(operator).await.unwrap(), OperatorCreated::Created);
    assert_eq!(store.agent_create(agent, 5).await.unwrap(), AgentCreated::Created);
    store.close().await;
    sqlx::any::install_default_drivers();
    let pool = sqlx::AnyPool::connect(url).await.unwrap();
    undo(&pool, UNDO_ACCOUNTS_AND_FLOW).await;
    pool.close().await;
    let store = Store::connect(url, Options::default()).await.unwrap();
    for secret in [token, key] {
        let owner = store.accounts().principal(&secret, fixture::at(1)).await.unwrap();
        assert_eq!(owner.unwrap().operator(), Some(id));
    }
    let found = store.operator(id).await.unwrap().unwrap();
    assert_eq!(
        (found.verified_at, found.adult_stated_at),
        (Some(found.created_at), None)
    );
    let agents = store.accounts().agents_of(id, fixture::at(1)).await.unwrap();
    assert_eq!((agents.len(), agents[0].keys.len()), (1, 1));
    let taken = store.agent_create(fixture::new_agent(id, "tide-1"), 5).await.unwrap();
    assert_eq!(taken, AgentCreated::NameTaken);
}

#[tokio::test]
async fn accounts_of_an_earlier_build_stay_active() {
    let (url, _folder) = fresh_file();
    accounts_of_an_earlier_build_are_active(&url).await;
    #[cfg(feature = "postgres")]
    if let Some((url, ())) = server::fresh() {
        accounts_of_an_earlier_build_are_active(&url).await;
    }
}

/// Allowances and merged batches of an earlier build: the former are of contributions, the latter get their points by a
/// job.
async fn allowances_and_batches_of_an_earlier_build_are_kept(url: &str) {
    let store = Store::connect(url, Options::default()).await.unwrap();
    let world = World::new(&store).await;
    let ids = world.submitted(&store, 2).await;
    let outcomes = ids.iter().zip(1..).map(|(id, version)| outcome(*id, merged(version)));
    for applied in store.outcomes_apply(outcomes.collect()).await.unwrap() {
        assert!(applied.changed);
    }
    store.close().await;
    sqlx::any::install_default_drivers();
    let pool = sqlx::AnyPool::connect(url).await.unwrap();
    undo(&pool, UNDO_ACCOUNTS_AND_FLOW).await;
    for earlier in [
        format!(
            "INSERT INTO allowances (operator_id, day, used) VALUES ('{}', 7, 3)",
            world.operator
        ),
        "UPDATE contributions SET accepted = 12".to_owned(),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(earlier)).execute(&pool).await.unwrap();
    }
    pool.close().await;
    let store = Store::connect(url, Options::default()).await.unwrap();
    for (kind, used) in [(AllowanceKind::Contribution, 3), (AllowanceKind::Knowledge, 0)] {
        assert_eq!(store.allowance_used(world.operator, kind, 7).await.unwrap(), used);
    }
    let jobs = store
        .flow()
        .jobs_lease(fixture::at(0), Duration::from_mins(1), 10)
        .await
        .unwrap();
    assert_eq!(
        jobs.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>(),
        ["points_of_batches"]
    );
    assert_eq!(store.points().of_agent(world.agent).await.unwrap().points, 0);
    assert_eq!(store.points().batches_fill(None, 10).await.unwrap().added, 2);
    assert_eq!(store.points().of_agent(world.agent).await.unwrap().points, 4);
    assert_eq!(store.points().batches_fill(None, 10).await.unwrap().added, 0);
}

#[tokio::test]
async fn allowances_and_batches_of_an_earlier_build_stay() {
    let (url, _folder) = fresh_file();
    allowances_and_batches_of_an_earlier_build_are_kept(&url).await;
    #[cfg(feature = "postgres")]
    if let Some((url, ())) = server::fresh() {
        allowances_and_batches_of_an_earlier_build_are_kept(&url).await;
    }
}

#[tokio::test]
async fn a_free_dataset_that_an_earlier_build_makes_shows_rows_and_a_paid_one_none() {
    let (url, _folder) = fresh_file();
    let store = Store::connect(&url, Options::default()).await.unwrap();
    let world = World::new(&store).await;
    let sold = crate::NewProject {
        access: crate::Access::Paid,
        ..fixture::new_project(world.operator, "sold")
    };
    fixture::project(&store, sold).await;
    let pool = sqlx::AnyPool::connect(&url).await.unwrap();
    // It does not know of the column, so its rows have no value there.
    let unknown = sqlx::query("UPDATE projects SET preview_rows = NULL");
    assert_eq!(unknown.execute(&pool).await.unwrap().rows_affected(), 2);
    for (slug, rows) in [("weather", Some(20)), ("sold", None)] {
        let found = store.project_by_slug(slug, None).await.unwrap().unwrap();
        assert_eq!(found.preview_rows, rows, "{slug}");
    }
    pool.close().await;
}
