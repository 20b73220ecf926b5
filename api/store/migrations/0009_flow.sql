-- Work that must happen later: letters, expiry, payouts.
CREATE TABLE jobs (
    id {{text}} NOT NULL PRIMARY KEY,
    kind {{text}} NOT NULL,
    -- A second job with the same value is not added.
    dedupe {{text}} UNIQUE,
    -- The operator that may see the job.
    operator_id {{text}},
    payload {{text}} NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    -- A job under way is due again at this time.
    leased_until BIGINT,
    last_error {{text}},
    created_at BIGINT NOT NULL,
    -- Set when no further try can help.
    failed_at BIGINT
);
CREATE INDEX jobs_due ON jobs (failed_at, due_at);
CREATE INDEX jobs_of_operator ON jobs (operator_id);
