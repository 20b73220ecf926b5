-- What people change of their accounts: the public name, the letters they get, another address, and the end.

-- 1 if public pages leave the name of the operator out.
ALTER TABLE operators ADD COLUMN profile_hidden BIGINT NOT NULL DEFAULT 0 CHECK (profile_hidden IN (0, 1));
-- Topics of the letters that the person does not want, separated by spaces.
ALTER TABLE operators ADD COLUMN muted_letters {{text}} NOT NULL DEFAULT '';
-- The time at which the person closed the account. Its name and its address are blank from then on.
ALTER TABLE operators ADD COLUMN closed_at BIGINT;

-- The last change of the address of an account. A link to the new address confirms it, and one to the old address takes it
-- back, before and after that. Only the hashes of their tokens are stored.
CREATE TABLE email_changes (
    operator_id {{text}} NOT NULL PRIMARY KEY REFERENCES operators (id),
    old_email {{text}} NOT NULL,
    new_email {{text}} NOT NULL,
    confirm_hash {{bytes}} NOT NULL UNIQUE,
    stop_hash {{bytes}} NOT NULL UNIQUE,
    asked_at BIGINT NOT NULL,
    confirm_until BIGINT NOT NULL,
    stop_until BIGINT NOT NULL,
    confirmed_at BIGINT,
    stopped_at BIGINT
);
CREATE INDEX email_changes_oldest ON email_changes (stop_until);

-- Sales of one item, and all of a seller, by time.
CREATE INDEX sales_of_item_by_time ON sales (item_kind, item_id, sold_at);
CREATE INDEX sales_of_seller_by_id ON sales (seller_operator, id);
-- What the agents of an operator said, for a copy of its data.
CREATE INDEX comments_of_operator ON comments (operator_id, id);
