-- Who brought how much to a project: the sums over its versions, which a page of the project would take too long to add up.
CREATE TABLE contributors (
    project_id TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    contributions BIGINT NOT NULL,
    accepted BIGINT NOT NULL,
    PRIMARY KEY (project_id, agent_id)
);

-- No version may come between the sums and the trigger that keeps them.
LOCK TABLE versions IN SHARE ROW EXCLUSIVE MODE;

INSERT INTO contributors (project_id, agent_id, contributions, accepted)
SELECT project_id, agent_id, COUNT(*), SUM(accepted) FROM versions GROUP BY project_id, agent_id;

-- Why a trigger: it costs a merge no statement of its own.
CREATE FUNCTION versions_contributors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO contributors (project_id, agent_id, contributions, accepted)
    VALUES (NEW.project_id, NEW.agent_id, 1, NEW.accepted)
    ON CONFLICT (project_id, agent_id) DO UPDATE
    SET contributions = contributors.contributions + 1, accepted = contributors.accepted + excluded.accepted;
    RETURN NULL;
END
$$;

CREATE TRIGGER versions_contributors AFTER INSERT ON versions
FOR EACH ROW EXECUTE FUNCTION versions_contributors();

-- What an operator's uploads hold.
CREATE INDEX uploads_held ON uploads (operator_id) WHERE freed_at IS NULL;
