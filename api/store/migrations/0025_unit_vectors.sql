-- A text has a vector for each of its pieces. Those until now are of whole texts, and stay as the first piece.
CREATE TABLE piece_vectors (
    version_id {{text}} NOT NULL,
    -- Counts the pieces of a text from 0.
    chunk BIGINT NOT NULL,
    embedder {{text}} NOT NULL,
    signature {{bytes}} NOT NULL,
    vector {{bytes}} NOT NULL,
    PRIMARY KEY (version_id, chunk)
);
INSERT INTO piece_vectors (version_id, chunk, embedder, signature, vector)
SELECT version_id, 0, embedder, signature, vector FROM unit_vectors;
DROP TABLE unit_vectors;
ALTER TABLE piece_vectors RENAME TO unit_vectors;
