-- Losses of history: a table lacked versions that it was known to have, and an administrator accepted that.
CREATE TABLE losses (
    project_id TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    -- Counts the losses of a project from 1.
    number BIGINT NOT NULL,
    -- The last version that the table still had, and the latest that it was known to have.
    kept BIGINT NOT NULL,
    version BIGINT NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    accepted_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, number)
);

-- The versions that were lost, as they were. Their numbers are given again.
CREATE TABLE lost_versions (
    project_id TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    loss BIGINT NOT NULL,
    version BIGINT NOT NULL,
    contribution_id TEXT COLLATE "C" NOT NULL REFERENCES contributions (id),
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    accepted BIGINT NOT NULL,
    record_count BIGINT NOT NULL,
    root TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, loss, version)
);

-- The number of the loss that a merged contribution was lost with.
ALTER TABLE contributions ADD COLUMN loss BIGINT;
