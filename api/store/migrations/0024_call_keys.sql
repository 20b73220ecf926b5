-- Idempotency keys of calls that make something; those of contributions have a table of their own. A row names what the call
-- made and keeps nothing of its content.
CREATE TABLE call_keys (
    caller {{text}} NOT NULL,
    operation {{text}} NOT NULL,
    idempotency_key {{text}} NOT NULL,
    body_hash {{bytes}} NOT NULL,
    made {{text}} NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (caller, operation, idempotency_key)
);
CREATE INDEX call_keys_oldest ON call_keys (created_at);
