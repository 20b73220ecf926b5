-- What moderators and administrators read: why and by whom something was decided, whose accounts there are, and the figures of
-- the service by day.

-- The owner of the item when it was reported.
ALTER TABLE reports ADD COLUMN owner_id {{text}};
-- Why a report was dismissed, and the operator who did it; null for an administrator at the command line.
ALTER TABLE reports ADD COLUMN note {{text}};
ALTER TABLE reports ADD COLUMN decided_by {{text}};
UPDATE reports SET owner_id = (SELECT chains.operator_id FROM chains WHERE chains.id = reports.item_id) WHERE kind = 'unit';
UPDATE reports SET owner_id =
    (SELECT projects.operator_id FROM projects WHERE projects.id = reports.item_id)
WHERE kind = 'dataset';
UPDATE reports SET owner_id = (SELECT agents.operator_id FROM agents WHERE agents.id = reports.item_id) WHERE kind = 'agent';
UPDATE reports SET owner_id =
    (SELECT requests.operator_id FROM requests WHERE requests.id = reports.item_id)
WHERE kind = 'topic';
UPDATE reports SET owner_id =
    (SELECT comments.operator_id FROM comments
     WHERE comments.id = CASE WHEN reports.item_id LIKE '%/%' THEN NULL ELSE CAST(reports.item_id AS BIGINT) END)
WHERE kind IN ('comment', 'review') AND item_id NOT LIKE '%/%';
-- Words beside a rating are named by the unit and the agent: two ids of 36 characters.
UPDATE reports SET owner_id =
    (SELECT unit_ratings.operator_id FROM unit_ratings
     WHERE unit_ratings.chain_id = SUBSTR(reports.item_id, 1, 36) AND unit_ratings.agent_id = SUBSTR(reports.item_id, 38))
WHERE kind = 'review' AND item_id LIKE '%/%';
CREATE INDEX reports_of_owner ON reports (owner_id, id);
CREATE INDEX reports_of_reporter ON reports (reporter, status);
CREATE INDEX reports_decided ON reports (decided_at, id);
CREATE INDEX reports_decided_so ON reports (status, decided_at, id);

-- Why an item was shown again.
ALTER TABLE takedowns ADD COLUMN restored_note {{text}};
CREATE INDEX takedowns_down ON takedowns (id) WHERE restored_at IS NULL;
CREATE INDEX takedowns_answered ON takedowns (answered_at) WHERE restored_at IS NULL AND answered_at IS NOT NULL;

-- The operator who invited; null for an administrator at the command line.
ALTER TABLE invites ADD COLUMN invited_by {{text}};
CREATE INDEX invites_newest ON invites (created_at, email_key);
CREATE INDEX invite_requests_oldest ON invite_requests (created_at, email_key);

-- Accounts are found by the beginning of their name, in whatever case, and counted by day.
CREATE INDEX operators_by_name ON operators (LOWER(display_name));
CREATE INDEX operators_of_role ON operators (role);
CREATE INDEX operators_of_day ON operators (created_at);
CREATE INDEX sales_of_day ON sales (sold_at);
CREATE INDEX versions_of_day ON versions (created_at, accepted);
CREATE INDEX jobs_failing ON jobs (created_at) WHERE last_error IS NOT NULL;

-- Figures of a UTC day, as the tables said when they were counted last.
CREATE TABLE figures_days (
    day BIGINT NOT NULL PRIMARY KEY,
    -- The accounts of all days.
    accounts BIGINT NOT NULL,
    sign_ups BIGINT NOT NULL,
    confirmed BIGINT NOT NULL,
    -- Sales for money, and their prices by the way they were paid.
    sales BIGINT NOT NULL,
    credit_micro BIGINT NOT NULL,
    wallet_micro BIGINT NOT NULL,
    fee_micro BIGINT NOT NULL,
    trials BIGINT NOT NULL,
    versions BIGINT NOT NULL,
    rows_merged BIGINT NOT NULL,
    units BIGINT NOT NULL,
    counted_at BIGINT NOT NULL
);
