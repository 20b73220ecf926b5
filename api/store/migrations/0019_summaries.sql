-- Summaries of versions of public datasets, by a model.
CREATE TABLE summaries (
    project_id {{text}} NOT NULL REFERENCES projects (id),
    version BIGINT NOT NULL,
    -- Null until it is written, with the name of the model and the time.
    summary {{text}},
    model {{text}},
    written_at BIGINT,
    -- How many answers about the version could not be used.
    failures BIGINT NOT NULL,
    -- While it is not written, nobody begins before.
    due_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, version),
    CHECK ((summary IS NULL) = (model IS NULL)),
    CHECK ((summary IS NULL) = (written_at IS NULL))
);
