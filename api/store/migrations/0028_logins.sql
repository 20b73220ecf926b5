-- Logins of devices: a command asks for a key, and a person who is signed in types its code and approves.

CREATE TABLE logins (
    -- The hash of the key, which works once the login is approved.
    key_hash {{bytes}} NOT NULL PRIMARY KEY,
    -- The hash of the code until the login is decided; a decided one has none.
    code_hash {{bytes}} UNIQUE,
    -- What the device calls itself.
    device {{text}} NOT NULL,
    -- The network address that asked.
    address {{text}} NOT NULL,
    status {{text}} NOT NULL CHECK (status IN ('pending', 'approved', 'rejected')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    CHECK ((status = 'pending') = (code_hash IS NOT NULL))
);
CREATE INDEX logins_oldest ON logins (expires_at);

-- The wrong codes that a person typed.
CREATE TABLE login_tries (
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    tried_at BIGINT NOT NULL
);
CREATE INDEX login_tries_of_operator ON login_tries (operator_id, tried_at);
CREATE INDEX login_tries_oldest ON login_tries (tried_at);

-- The device that a key was given to by a login; none for a key that was made in the console or came with a claim.
ALTER TABLE agent_keys ADD COLUMN label {{text}};
