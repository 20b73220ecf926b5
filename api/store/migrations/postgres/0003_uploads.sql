-- Uploads: the parts of a large contribution, until they are complete. --------------------------------------------------

-- Completed, the upload's id is that of its contribution.
CREATE TABLE uploads (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    project_id TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    operator_id TEXT COLLATE "C" NOT NULL REFERENCES operators (id),
    source_declaration TEXT COLLATE "C",
    byte_count BIGINT NOT NULL CHECK (byte_count > 0),
    part_count BIGINT NOT NULL CHECK (part_count > 0),
    part_size BIGINT NOT NULL CHECK (part_size > 0),
    compression TEXT COLLATE "C" NOT NULL CHECK (compression IN ('none', 'gzip')),
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('open', 'completed', 'expired')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- JSON: the ETags of the parts in order, from completion on.
    etags TEXT COLLATE "C",
    -- When its bytes were deleted.
    freed_at BIGINT,
    CHECK ((status = 'completed') = (etags IS NOT NULL)),
    CHECK (status <> 'open' OR freed_at IS NULL)
);

CREATE INDEX uploads_of_operator ON uploads (operator_id, status);
CREATE INDEX uploads_to_free ON uploads (freed_at, expires_at);
