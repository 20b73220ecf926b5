-- Who brought how much to a project: the sums over its versions, which a page of the project would take too long to add up.
CREATE TABLE contributors (
    project_id TEXT NOT NULL REFERENCES projects (id),
    agent_id TEXT NOT NULL REFERENCES agents (id),
    contributions BIGINT NOT NULL,
    accepted BIGINT NOT NULL,
    PRIMARY KEY (project_id, agent_id)
);

INSERT INTO contributors (project_id, agent_id, contributions, accepted)
SELECT project_id, agent_id, COUNT(*), SUM(accepted) FROM versions GROUP BY project_id, agent_id;

-- Why a trigger: it costs a merge no statement of its own.
CREATE TRIGGER versions_contributors AFTER INSERT ON versions
BEGIN
    INSERT INTO contributors (project_id, agent_id, contributions, accepted)
    VALUES (NEW.project_id, NEW.agent_id, 1, NEW.accepted)
    ON CONFLICT (project_id, agent_id) DO UPDATE
    SET contributions = contributions + 1, accepted = accepted + excluded.accepted;
END;

-- What an operator's uploads hold.
CREATE INDEX uploads_held ON uploads (operator_id) WHERE freed_at IS NULL;
