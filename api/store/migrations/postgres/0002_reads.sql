-- What the service signs with. Rows are added and never removed; the one with the highest number is the current key. ---

CREATE TABLE service_keys (
    number BIGINT NOT NULL PRIMARY KEY,
    key_id TEXT COLLATE "C" NOT NULL UNIQUE,
    public_key BYTEA NOT NULL,
    secret BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    retired_at BIGINT,
    revoked_at BIGINT,
    reason TEXT COLLATE "C",
    -- The key before it that vouches for it; none for the first.
    endorsed_by TEXT COLLATE "C",
    endorsement BYTEA,
    CHECK ((number = 1) = (endorsed_by IS NULL)),
    CHECK ((endorsed_by IS NULL) = (endorsement IS NULL)),
    CHECK ((revoked_at IS NULL) = (reason IS NULL))
);

-- Random bytes that are made once and shared by every process of the service.
CREATE TABLE secrets (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);

-- Who reads how much ---------------------------------------------------------------------------------------------------

-- The one query of an operator that may run, until it ends or its time is up.
CREATE TABLE query_leases (
    operator_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    ends_at BIGINT NOT NULL
);

-- Months are counted from January 1970.
CREATE TABLE egress (
    operator_id TEXT COLLATE "C" NOT NULL,
    month BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    PRIMARY KEY (operator_id, month)
);
