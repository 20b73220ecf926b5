-- Collectors: the definitions that processes saw, the place of each in its source, its lease and its runs.

CREATE TABLE collectors (
    name {{text}} NOT NULL PRIMARY KEY,
    dataset {{text}} NOT NULL,
    title {{text}} NOT NULL,
    publisher {{text}} NOT NULL,
    license {{text}} NOT NULL,
    -- A cron expression in UTC.
    schedule {{text}} NOT NULL,
    seen_at BIGINT NOT NULL,
    -- The instant from which the next run is due.
    next_at BIGINT NOT NULL,
    -- The place in the source, as JSON. It belongs to one definition.
    cursor {{text}},
    -- Runs that failed since the last one that did not.
    failures BIGINT NOT NULL,
    -- The run under way and the end of its lease.
    run_id {{text}},
    leased_until BIGINT
);
CREATE INDEX collectors_due ON collectors (next_at);

CREATE TABLE collector_runs (
    id {{text}} NOT NULL PRIMARY KEY,
    collector {{text}} NOT NULL REFERENCES collectors (name),
    due_at BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    -- Null while it runs, as is the outcome.
    ended_at BIGINT,
    outcome {{text}} CHECK (outcome IN ('merged', 'unchanged', 'held', 'failed')),
    fetched BIGINT NOT NULL,
    added BIGINT NOT NULL,
    known BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    -- The latest version that the run merged.
    version BIGINT,
    -- Why it failed or was held: a word, and a sentence for people.
    reason_code {{text}},
    reason {{text}}
);
CREATE INDEX collector_runs_of_collector ON collector_runs (collector, id);
