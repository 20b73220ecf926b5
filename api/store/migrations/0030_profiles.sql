-- How many rows of a dataset anybody sees: at most 100, of a paid one at most 20. Null shows 20 rows of a free one and
-- nothing of a paid one, whose owner was never asked. Datasets from before have it, and so have those that an earlier
-- build makes beside this one.
ALTER TABLE projects ADD COLUMN preview_rows BIGINT;

-- Figures and rows of versions. All of it is made again from the tables where it is missing.
CREATE TABLE profiles (
    project_id {{text}} NOT NULL REFERENCES projects (id),
    version BIGINT NOT NULL,
    -- The content root, because the number of a version that was lost is given again.
    root {{text}} NOT NULL,
    -- Null until it is built.
    made_at BIGINT,
    records BIGINT,
    figures {{text}},
    preview {{text}},
    -- What anybody sees of a version of a paid dataset that is a milestone.
    public_figures {{text}},
    public_preview {{text}},
    -- When somebody asked for this version; null if nobody did.
    asked_at BIGINT,
    PRIMARY KEY (project_id, version, root),
    CHECK ((figures IS NULL) = (made_at IS NULL)),
    CHECK ((figures IS NULL) = (records IS NULL)),
    CHECK ((figures IS NULL) = (preview IS NULL)),
    CHECK ((public_figures IS NULL) = (public_preview IS NULL)),
    CHECK (public_figures IS NULL OR figures IS NOT NULL)
);
CREATE INDEX profiles_to_build ON profiles (asked_at) WHERE figures IS NULL;

-- The building of profiles, a row a dataset.
CREATE TABLE profile_work (
    project_id {{text}} NOT NULL PRIMARY KEY REFERENCES projects (id),
    -- Until then a process has the dataset to itself.
    lease_until BIGINT NOT NULL,
    -- The newest version is not built before.
    due_at BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    -- Why the last build failed: the word of an error of the interface.
    problem {{text}},
    -- Size of the sketches of the parts of the version that was built last.
    sketch_bytes BIGINT NOT NULL
);
