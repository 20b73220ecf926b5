-- The portable subset: TEXT, BIGINT and bytes (BLOB here, BYTEA on PostgreSQL); flags are 0 or 1, times are
-- microseconds since 1970, money is micro-USDC, JSON is text. Ids and times come from the program.

-- Accounts -----------------------------------------------------------------------------------------------------------

CREATE TABLE operators (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    -- The address folded to lower case: what uniqueness is about.
    email_key TEXT NOT NULL UNIQUE,
    display_name TEXT NOT NULL,
    terms_version TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    suspended_at BIGINT,
    suspended_reason TEXT,
    CHECK ((suspended_at IS NULL) = (suspended_reason IS NULL))
);

CREATE TABLE operator_tokens (
    token_hash BLOB NOT NULL PRIMARY KEY,
    operator_id TEXT NOT NULL REFERENCES operators (id),
    created_at BIGINT NOT NULL
);

CREATE TABLE agents (
    id TEXT NOT NULL PRIMARY KEY,
    operator_id TEXT NOT NULL REFERENCES operators (id),
    name TEXT NOT NULL,
    -- The name with case and look-alike characters folded.
    skeleton TEXT NOT NULL UNIQUE,
    wallet_address TEXT,
    description TEXT,
    key_hash BLOB NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE INDEX agents_of_operator ON agents (operator_id);

-- Datasets -----------------------------------------------------------------------------------------------------------

CREATE TABLE projects (
    id TEXT NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    -- The title with its case folded: what a search looks at.
    title_key TEXT NOT NULL,
    license TEXT NOT NULL,
    tags TEXT NOT NULL,
    access TEXT NOT NULL CHECK (access IN ('public', 'paid')),
    visibility TEXT NOT NULL CHECK (visibility IN ('public', 'private')),
    price_micro BIGINT CHECK (price_micro >= 0),
    price_changed_at BIGINT,
    trial_sale BIGINT NOT NULL CHECK (trial_sale IN (0, 1)),
    status TEXT NOT NULL CHECK (status IN ('open', 'paused', 'archived')),
    operator_id TEXT NOT NULL REFERENCES operators (id),
    created_by_agent_id TEXT REFERENCES agents (id),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- The latest version that an outcome told of, and how many records it has.
    version BIGINT NOT NULL,
    record_count BIGINT NOT NULL,
    contract TEXT NOT NULL,
    readme TEXT NOT NULL,
    CHECK (visibility = 'public' OR access = 'public')
);

CREATE INDEX projects_newest ON projects (created_at, id);
CREATE INDEX projects_of_operator ON projects (operator_id, status);

-- Contributions ------------------------------------------------------------------------------------------------------

CREATE TABLE contributions (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    agent_id TEXT NOT NULL REFERENCES agents (id),
    operator_id TEXT NOT NULL REFERENCES operators (id),
    source_declaration TEXT,
    row_count BIGINT NOT NULL,
    private BIGINT NOT NULL CHECK (private IN (0, 1)),
    submitted_at BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('submitted', 'waiting', 'merged', 'rejected')),
    -- Counts replays; an outcome closes the row only when it is of this generation.
    generation BIGINT NOT NULL,
    decided_at BIGINT,
    version BIGINT,
    accepted BIGINT,
    record_count BIGINT,
    root TEXT,
    reject_code TEXT,
    reject_message TEXT,
    waiting_reason TEXT,
    resumes_after BIGINT,
    tallies TEXT,
    verdicts TEXT,
    CHECK ((status = 'merged') = (version IS NOT NULL)),
    CHECK ((status = 'rejected') = (reject_code IS NOT NULL)),
    CHECK ((status IN ('merged', 'rejected')) = (decided_at IS NOT NULL))
);

CREATE INDEX contributions_of_project ON contributions (project_id, id);

-- What outcomes told of the tables. No constraint judges it: a wrong one is for the checker to find, and must not stop
-- the outcomes behind it.
CREATE TABLE versions (
    project_id TEXT NOT NULL REFERENCES projects (id),
    version BIGINT NOT NULL,
    contribution_id TEXT NOT NULL REFERENCES contributions (id),
    agent_id TEXT NOT NULL REFERENCES agents (id),
    accepted BIGINT NOT NULL,
    record_count BIGINT NOT NULL,
    root TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, version)
);

-- The submission of every contribution without a terminal outcome, and of no other.
CREATE TABLE outbox (
    contribution_id TEXT NOT NULL PRIMARY KEY REFERENCES contributions (id),
    project_id TEXT NOT NULL REFERENCES projects (id),
    attempts BIGINT NOT NULL,
    next_sweep BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    submission BLOB NOT NULL
);

-- Covers the bound on the outbox as well as the sweep.
CREATE INDEX outbox_due ON outbox (next_sweep, byte_count);

CREATE TABLE idempotency_keys (
    agent_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    contribution_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, project_id, idempotency_key)
);

CREATE INDEX idempotency_keys_oldest ON idempotency_keys (created_at);

CREATE TABLE allowances (
    operator_id TEXT NOT NULL,
    day BIGINT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (operator_id, day)
);

-- The flow -----------------------------------------------------------------------------------------------------------

CREATE TABLE dead_letters (
    id TEXT NOT NULL PRIMARY KEY,
    topic TEXT NOT NULL,
    log_partition BIGINT NOT NULL,
    log_offset BIGINT NOT NULL,
    -- Offsets start again when a topic does, so the place alone does not name a message.
    payload_hash BLOB NOT NULL,
    contribution_id TEXT,
    reason TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    replayed_at BIGINT,
    payload BLOB NOT NULL,
    UNIQUE (topic, log_partition, log_offset, payload_hash)
);

CREATE TABLE usage_counts (
    day BIGINT NOT NULL,
    kind TEXT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (day, kind)
);
