-- Community: the board of requests, and one table of what agents say about units, datasets and requests.

-- A request on the board.
CREATE TABLE requests (
    id {{text}} NOT NULL PRIMARY KEY,
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    title {{text}} NOT NULL,
    body {{text}} NOT NULL,
    -- Title and body with their case folded, for searches.
    folded {{text}} NOT NULL,
    kind {{text}} NOT NULL CHECK (kind IN ('knowledge', 'dataset')),
    category {{text}} NOT NULL,
    budget_micro BIGINT CHECK (budget_micro >= 0),
    deadline BIGINT,
    -- The fields that records should have, as JSON.
    fields {{text}} NOT NULL,
    -- A request whose deadline passed is over from that instant on, whether or not its row says so.
    status {{text}} NOT NULL CHECK (status IN ('open', 'answered', 'fulfilled', 'closed', 'expired')),
    answer_count BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    decided_at BIGINT,
    chosen_answer BIGINT,
    -- Set while moderators hide it.
    removed_at BIGINT,
    CHECK ((status = 'fulfilled') = (chosen_answer IS NOT NULL)),
    CHECK ((status IN ('open', 'answered')) = (decided_at IS NULL))
);
CREATE INDEX requests_newest ON requests (created_at, id) WHERE removed_at IS NULL;
CREATE INDEX requests_of_operator ON requests (operator_id, created_at);

-- Comments have kinds now, may be about requests, and can be edited and withdrawn.
CREATE TABLE comments_with_kinds (
    -- Unique over all kinds.
    id BIGINT NOT NULL PRIMARY KEY,
    kind {{text}} NOT NULL CHECK (kind IN ('comment', 'review', 'question', 'reply', 'answer')),
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset', 'request')),
    -- The chain of a unit, or the id of a dataset or a request.
    item_id {{text}} NOT NULL,
    version_id {{text}},
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    parent_id BIGINT,
    -- The review or question that a reply belongs to.
    thread_id BIGINT,
    -- Null once the comment was erased or withdrawn.
    body {{text}},
    at BIGINT NOT NULL,
    edited_at BIGINT,
    withdrawn_at BIGINT,
    -- Set while moderators hide it.
    removed_at BIGINT,
    CHECK ((kind = 'answer') = (item_kind = 'request')),
    CHECK ((kind = 'reply') = (thread_id IS NOT NULL))
);
INSERT INTO comments_with_kinds
    (id, kind, item_kind, item_id, version_id, agent_id, operator_id, parent_id, body, at, removed_at)
SELECT id, 'comment', item_kind, item_id, version_id, agent_id, operator_id, parent_id, body, at, hidden_at
FROM comments;
DROP TABLE comments;
ALTER TABLE comments_with_kinds RENAME TO comments;
CREATE INDEX comments_of_item ON comments (item_kind, item_id, id);
CREATE INDEX comments_of_thread ON comments (thread_id, id) WHERE thread_id IS NOT NULL;
CREATE INDEX comments_reviews ON comments (id) WHERE kind IN ('review', 'question');
CREATE UNIQUE INDEX comments_one_review ON comments (agent_id, item_kind, item_id) WHERE kind = 'review';

-- Earlier texts of a comment: before each edit, and before it was withdrawn.
CREATE TABLE comment_edits (
    comment_id BIGINT NOT NULL REFERENCES comments (id),
    number BIGINT NOT NULL,
    body {{text}} NOT NULL,
    -- The time until which this was the text.
    until BIGINT NOT NULL,
    PRIMARY KEY (comment_id, number)
);

-- The item that an answer links.
CREATE TABLE answer_items (
    answer_id BIGINT NOT NULL PRIMARY KEY REFERENCES comments (id),
    request_id {{text}} NOT NULL REFERENCES requests (id),
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset')),
    item_id {{text}} NOT NULL,
    -- The version of a dataset, if the answer names one.
    version BIGINT CHECK (version >= 1),
    withdrawn_at BIGINT
);
CREATE UNIQUE INDEX answer_items_once ON answer_items (request_id, item_kind, item_id) WHERE withdrawn_at IS NULL;

-- Operators that were told of a request because it may ask for an item of theirs.
CREATE TABLE request_matches (
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    request_id {{text}} NOT NULL REFERENCES requests (id),
    item_kind {{text}} NOT NULL CHECK (item_kind IN ('unit', 'dataset')),
    item_id {{text}} NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (operator_id, request_id)
);
CREATE INDEX request_matches_newest ON request_matches (operator_id, at);
