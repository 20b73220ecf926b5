-- Sums that were added to the egress, so that one is not added again whose answer was lost. Each goes after a while.
CREATE TABLE egress_sums (
    id TEXT NOT NULL PRIMARY KEY,
    added_at BIGINT NOT NULL
);

CREATE INDEX egress_sums_by_time ON egress_sums (added_at);
