-- In step with the other engine's file of the same name. TEXT, BIGINT and bytes (BYTEA here); flags are 0 or 1, times
-- are microseconds since 1970, money is micro-USDC, JSON is text. Ids and times come from the program. Texts are ordered
-- by their bytes, as the program and the other engine order them, whatever the language of the database.

-- Accounts -----------------------------------------------------------------------------------------------------------

CREATE TABLE operators (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    email TEXT COLLATE "C" NOT NULL,
    -- The address folded to lower case: what uniqueness is about.
    email_key TEXT COLLATE "C" NOT NULL UNIQUE,
    display_name TEXT COLLATE "C" NOT NULL,
    terms_version TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    suspended_at BIGINT,
    suspended_reason TEXT COLLATE "C",
    CHECK ((suspended_at IS NULL) = (suspended_reason IS NULL))
);

CREATE TABLE operator_tokens (
    token_hash BYTEA NOT NULL PRIMARY KEY,
    operator_id TEXT COLLATE "C" NOT NULL REFERENCES operators (id),
    created_at BIGINT NOT NULL
);

CREATE TABLE agents (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    operator_id TEXT COLLATE "C" NOT NULL REFERENCES operators (id),
    name TEXT COLLATE "C" NOT NULL,
    -- The name with case and look-alike characters folded.
    skeleton TEXT COLLATE "C" NOT NULL UNIQUE,
    wallet_address TEXT COLLATE "C",
    description TEXT COLLATE "C",
    key_hash BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE INDEX agents_of_operator ON agents (operator_id);

-- Datasets -----------------------------------------------------------------------------------------------------------

CREATE TABLE projects (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    slug TEXT COLLATE "C" NOT NULL UNIQUE,
    title TEXT COLLATE "C" NOT NULL,
    -- The title with its case folded: what a search looks at.
    title_key TEXT COLLATE "C" NOT NULL,
    license TEXT COLLATE "C" NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    access TEXT COLLATE "C" NOT NULL CHECK (access IN ('public', 'paid')),
    visibility TEXT COLLATE "C" NOT NULL CHECK (visibility IN ('public', 'private')),
    price_micro BIGINT CHECK (price_micro >= 0),
    price_changed_at BIGINT,
    trial_sale BIGINT NOT NULL CHECK (trial_sale IN (0, 1)),
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('open', 'paused', 'archived')),
    operator_id TEXT COLLATE "C" NOT NULL REFERENCES operators (id),
    created_by_agent_id TEXT COLLATE "C" REFERENCES agents (id),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- The latest version that an outcome told of, and how many records it has.
    version BIGINT NOT NULL,
    record_count BIGINT NOT NULL,
    contract TEXT COLLATE "C" NOT NULL,
    readme TEXT COLLATE "C" NOT NULL,
    CHECK (visibility = 'public' OR access = 'public')
);

CREATE INDEX projects_newest ON projects (created_at, id);
CREATE INDEX projects_of_operator ON projects (operator_id, status);

-- Contributions ------------------------------------------------------------------------------------------------------

CREATE TABLE contributions (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    project_id TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    operator_id TEXT COLLATE "C" NOT NULL REFERENCES operators (id),
    source_declaration TEXT COLLATE "C",
    row_count BIGINT NOT NULL,
    private BIGINT NOT NULL CHECK (private IN (0, 1)),
    submitted_at BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('submitted', 'waiting', 'merged', 'rejected')),
    -- Counts replays; an outcome closes the row only when it is of this generation.
    generation BIGINT NOT NULL,
    decided_at BIGINT,
    version BIGINT,
    accepted BIGINT,
    record_count BIGINT,
    root TEXT COLLATE "C",
    reject_code TEXT COLLATE "C",
    reject_message TEXT COLLATE "C",
    waiting_reason TEXT COLLATE "C",
    resumes_after BIGINT,
    tallies TEXT COLLATE "C",
    verdicts TEXT COLLATE "C",
    CHECK ((status = 'merged') = (version IS NOT NULL)),
    CHECK ((status = 'rejected') = (reject_code IS NOT NULL)),
    CHECK ((status IN ('merged', 'rejected')) = (decided_at IS NOT NULL))
);

CREATE INDEX contributions_of_project ON contributions (project_id, id);

-- What outcomes told of the tables. No constraint judges it: a wrong one is for the checker to find, and must not stop
-- the outcomes behind it.
CREATE TABLE versions (
    project_id TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    version BIGINT NOT NULL,
    contribution_id TEXT COLLATE "C" NOT NULL REFERENCES contributions (id),
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    accepted BIGINT NOT NULL,
    record_count BIGINT NOT NULL,
    root TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, version)
);

-- The submission of every contribution without a terminal outcome, and of no other.
CREATE TABLE outbox (
    contribution_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES contributions (id),
    project_id TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    attempts BIGINT NOT NULL,
    next_sweep BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    submission BYTEA NOT NULL
);

-- Covers the bound on the outbox as well as the sweep.
CREATE INDEX outbox_due ON outbox (next_sweep, byte_count);

CREATE TABLE idempotency_keys (
    agent_id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    body_hash BYTEA NOT NULL,
    contribution_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, project_id, idempotency_key)
);

CREATE INDEX idempotency_keys_oldest ON idempotency_keys (created_at);

CREATE TABLE allowances (
    operator_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (operator_id, day)
);

-- The flow -----------------------------------------------------------------------------------------------------------

CREATE TABLE dead_letters (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    topic TEXT COLLATE "C" NOT NULL,
    log_partition BIGINT NOT NULL,
    log_offset BIGINT NOT NULL,
    -- Offsets start again when a topic does, so the place alone does not name a message.
    payload_hash BYTEA NOT NULL,
    contribution_id TEXT COLLATE "C",
    reason TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    replayed_at BIGINT,
    payload BYTEA NOT NULL,
    UNIQUE (topic, log_partition, log_offset, payload_hash)
);

CREATE TABLE usage_counts (
    day BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (day, kind)
);
