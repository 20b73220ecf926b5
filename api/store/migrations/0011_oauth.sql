-- Apps: registered clients, codes, connections and their tokens. Secrets are stored as SHA-256 only.

CREATE TABLE oauth_clients (
    id {{text}} NOT NULL PRIMARY KEY,
    -- What the client stated and the service keeps, as JSON.
    metadata {{text}} NOT NULL,
    registered_at BIGINT NOT NULL
);

-- One app that acts as one agent. A client need not be registered, so there is no reference to it.
CREATE TABLE oauth_connections (
    id {{text}} NOT NULL PRIMARY KEY,
    client_id {{text}} NOT NULL,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    resource {{text}} NOT NULL,
    scopes {{text}} NOT NULL,
    began_at BIGINT NOT NULL,
    -- The end of the renewal window.
    ends_at BIGINT NOT NULL,
    -- The number of the refresh token that can be used.
    current_number BIGINT NOT NULL,
    rotated_at BIGINT,
    -- What the current refresh token was made with, beside the one before.
    salt {{bytes}},
    -- Set when somebody or a reused token ended the connection.
    ended_at BIGINT,
    -- The time of the last call, exact to some minutes.
    used_at BIGINT,
    CHECK ((rotated_at IS NULL) = (salt IS NULL))
);
CREATE INDEX oauth_connections_of_operator ON oauth_connections (operator_id, ended_at);
CREATE INDEX oauth_connections_of_agent ON oauth_connections (agent_id);
CREATE INDEX oauth_connections_oldest ON oauth_connections (ends_at);
CREATE INDEX oauth_connections_ended ON oauth_connections (ended_at);

CREATE TABLE oauth_codes (
    code_hash {{bytes}} NOT NULL PRIMARY KEY,
    client_id {{text}} NOT NULL,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    resource {{text}} NOT NULL,
    scopes {{text}} NOT NULL,
    redirect_uri {{text}} NOT NULL,
    challenge {{bytes}} NOT NULL,
    expires_at BIGINT NOT NULL,
    -- The connection that the code was used for.
    connection_id {{text}} REFERENCES oauth_connections (id)
);
CREATE INDEX oauth_codes_of_operator ON oauth_codes (operator_id);
CREATE INDEX oauth_codes_of_agent ON oauth_codes (agent_id);
CREATE INDEX oauth_codes_of_connection ON oauth_codes (connection_id);
CREATE INDEX oauth_codes_oldest ON oauth_codes (expires_at);

-- Every refresh token of a connection, the old ones too: their use shows a theft.
CREATE TABLE oauth_refresh_tokens (
    token_hash {{bytes}} NOT NULL PRIMARY KEY,
    connection_id {{text}} NOT NULL REFERENCES oauth_connections (id),
    number BIGINT NOT NULL
);
CREATE INDEX oauth_refresh_tokens_of_connection ON oauth_refresh_tokens (connection_id);

CREATE TABLE oauth_access_tokens (
    token_hash {{bytes}} NOT NULL PRIMARY KEY,
    connection_id {{text}} NOT NULL REFERENCES oauth_connections (id),
    scopes {{text}} NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_access_tokens_of_connection ON oauth_access_tokens (connection_id);
CREATE INDEX oauth_access_tokens_oldest ON oauth_access_tokens (expires_at);

-- Identifiers of client assertions, each of which works once.
CREATE TABLE oauth_assertions (
    client_id {{text}} NOT NULL,
    -- A hash, so that the client does not choose its length and its characters.
    jti_hash {{bytes}} NOT NULL,
    until_at BIGINT NOT NULL,
    PRIMARY KEY (client_id, jti_hash)
);
CREATE INDEX oauth_assertions_oldest ON oauth_assertions (until_at);
