-- Seals of the days of the ledger. A day with a row here takes no event any more; its hash and signature follow, once it
-- was read.
CREATE TABLE ledger_seals (
    -- The UTC day, counted from 1970-01-01.
    day BIGINT NOT NULL PRIMARY KEY,
    -- The hash of the day before; zeros for the first day.
    before {{bytes}} NOT NULL,
    hash {{bytes}},
    key_id {{text}},
    signature {{bytes}},
    sealed_at BIGINT,
    CHECK ((hash IS NULL) = (key_id IS NULL)),
    CHECK ((hash IS NULL) = (signature IS NULL)),
    CHECK ((hash IS NULL) = (sealed_at IS NULL))
);

-- A day is read in the order of the ids of its events. No statement asks for the events of a month.
DROP INDEX ledger_events_of_month;
CREATE INDEX ledger_events_of_day ON ledger_events ((at / 86400000000), id);
