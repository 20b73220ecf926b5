-- The time of a dataset is that of its last merge, and of its creation before the first. Lists are ordered by it.
UPDATE projects SET updated_at = COALESCE(
    (SELECT versions.created_at FROM versions
     WHERE versions.project_id = projects.id AND versions.version = projects.version), created_at);
DROP INDEX projects_newest;
CREATE INDEX projects_latest ON projects (updated_at, id);

-- Sales by credits cost the price in force at the sale. Those until now cost the lowest of some minutes, so the check of
-- the price begins behind them.
INSERT INTO service_state (name, value, generation, at)
SELECT 'prices_in_force', '{}', 0, COALESCE(MAX(sold_at), 0) FROM sales;

-- Operators that read the records of another's dataset, each once.
CREATE TABLE dataset_readers (
    project_id {{text}} NOT NULL REFERENCES projects (id),
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    at BIGINT NOT NULL,
    PRIMARY KEY (project_id, operator_id)
);

-- Sums of the points of merged batches by agent, UTC day and dataset, for the ranking.
CREATE TABLE points_batches (
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    day BIGINT NOT NULL,
    project_id {{text}} NOT NULL REFERENCES projects (id),
    -- 0 for batches from before readers were noted: nobody can say who read them.
    needs_reader BIGINT NOT NULL CHECK (needs_reader IN (0, 1)),
    points BIGINT NOT NULL,
    batches BIGINT NOT NULL,
    PRIMARY KEY (agent_id, day, project_id, needs_reader)
);
INSERT INTO points_batches (agent_id, day, project_id, needs_reader, points, batches)
SELECT agent_id, at / 86400000000, subject, 0, SUM(points), COUNT(*) FROM points_events
WHERE kind = 'merged_batch' GROUP BY agent_id, at / 86400000000, subject;
CREATE INDEX points_batches_by_day ON points_batches (day);
