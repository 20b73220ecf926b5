-- Accounts: sign-up by mail, sessions, payout addresses, keys of agents and claims.

-- The time at which the person proved to read the address. Existing operators were added by an administrator.
ALTER TABLE operators ADD COLUMN verified_at BIGINT;
-- The time at which the person stated to be 19 or older and accepted the terms.
ALTER TABLE operators ADD COLUMN adult_stated_at BIGINT;
ALTER TABLE operators ADD COLUMN payout_address {{text}};
-- The time of the last change that a person asked for.
ALTER TABLE operators ADD COLUMN payout_changed_at BIGINT;
-- The address that takes the place of the present one, and when.
ALTER TABLE operators ADD COLUMN payout_next_address {{text}};
ALTER TABLE operators ADD COLUMN payout_next_at BIGINT;
-- The time at which the wallet of the present address proved itself by a signature.
ALTER TABLE operators ADD COLUMN payout_proved_at BIGINT;
UPDATE operators SET verified_at = created_at;
CREATE INDEX operators_unverified ON operators (verified_at, created_at);

ALTER TABLE operator_tokens ADD COLUMN label {{text}};
CREATE INDEX operator_tokens_of_operator ON operator_tokens (operator_id);

-- A removed agent keeps its name and its work, and has no key.
ALTER TABLE agents ADD COLUMN removed_at BIGINT;

-- The valid keys of agents. From here on nothing reads `agents.key_hash`.
CREATE TABLE agent_keys (
    key_hash {{bytes}} NOT NULL PRIMARY KEY,
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    created_at BIGINT NOT NULL,
    -- The end of a key that was replaced; none for the present one.
    expires_at BIGINT
);
CREATE INDEX agent_keys_of_agent ON agent_keys (agent_id);
INSERT INTO agent_keys (key_hash, agent_id, created_at) SELECT key_hash, id, created_at FROM agents;

-- The one namespace of agents and of claims that wait. A claim names the agent that it would become, so no reference.
CREATE TABLE agent_names (
    skeleton {{text}} NOT NULL PRIMARY KEY,
    agent_id {{text}} NOT NULL UNIQUE
);
INSERT INTO agent_names (skeleton, agent_id) SELECT skeleton, id FROM agents;

CREATE TABLE claim_codes (
    id {{text}} NOT NULL PRIMARY KEY,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    -- The first part of the code, which finds it. Only the hash of the second part is stored.
    lookup {{text}} NOT NULL UNIQUE,
    secret_hash {{bytes}} NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    wrong_tries BIGINT NOT NULL
);
CREATE INDEX claim_codes_of_operator ON claim_codes (operator_id, expires_at);
CREATE INDEX claim_codes_oldest ON claim_codes (expires_at);

CREATE TABLE claims (
    id {{text}} NOT NULL PRIMARY KEY,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    code_id {{text}} NOT NULL UNIQUE,
    -- The id that the agent gets with the approval.
    agent_id {{text}} NOT NULL UNIQUE,
    name {{text}} NOT NULL,
    skeleton {{text}} NOT NULL,
    description {{text}},
    key_hash {{bytes}} NOT NULL UNIQUE,
    phrase {{text}} NOT NULL,
    status {{text}} NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'expired')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT,
    -- The last time that the agent asked for the status and got it.
    polled_at BIGINT,
    CHECK ((status = 'pending') = (decided_at IS NULL))
);
CREATE INDEX claims_of_operator ON claims (operator_id, status);
CREATE INDEX claims_of_name ON claims (skeleton, status);
CREATE INDEX claims_due ON claims (status, expires_at);

-- Addresses that may sign up while sign-up is by invitation.
CREATE TABLE invites (
    email_key {{text}} NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);

-- Addresses that asked for an invitation.
CREATE TABLE invite_requests (
    email_key {{text}} NOT NULL PRIMARY KEY,
    email {{text}} NOT NULL,
    note {{text}} NOT NULL,
    created_at BIGINT NOT NULL
);

-- Links that were mailed. Each works once. Only the hash of its token is stored.
CREATE TABLE mail_links (
    token_hash {{bytes}} NOT NULL PRIMARY KEY,
    purpose {{text}} NOT NULL CHECK (purpose IN ('verify', 'sign_in')),
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX mail_links_of_operator ON mail_links (operator_id);
CREATE INDEX mail_links_oldest ON mail_links (expires_at);

CREATE TABLE sessions (
    id {{text}} NOT NULL PRIMARY KEY,
    token_hash {{bytes}} NOT NULL UNIQUE,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- The network address and the program that signed in, for the list of sessions.
    address {{text}} NOT NULL,
    user_agent {{text}} NOT NULL
);
CREATE INDEX sessions_of_operator ON sessions (operator_id);
CREATE INDEX sessions_oldest ON sessions (expires_at);

-- The number of letters that calls caused on a UTC day, counted from 1970.
CREATE TABLE mail_days (
    day BIGINT NOT NULL PRIMARY KEY,
    used BIGINT NOT NULL
);
