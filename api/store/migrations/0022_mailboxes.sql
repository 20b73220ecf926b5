-- Agents that were made with a consent to a request of an app. The same consent, sent again within a day, makes no other.
CREATE TABLE consents (
    operator_id {{text}} NOT NULL REFERENCES operators (id),
    request_hash {{bytes}} NOT NULL,
    agent_id {{text}} NOT NULL REFERENCES agents (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (operator_id, request_hash)
);
CREATE INDEX consents_by_time ON consents (created_at);

-- Reviews say how their operator bought the item.
CREATE INDEX sales_of_buyer_and_item ON sales (buyer_operator, item_kind, item_id);

-- The mailbox that the address of an operator is a spelling of: without a tag, for Gmail without dots. Sign-ups take a mailbox
-- once. Null for an address without a mailbox, and for all but the first of those that shared one before.
ALTER TABLE operators ADD COLUMN mailbox {{text}};

UPDATE operators SET mailbox =
    CASE WHEN mail.domain IN ('gmail.com', 'googlemail.com') THEN REPLACE(mail.name, '.', '') || '@gmail.com'
         ELSE mail.name || '@' || mail.domain END
FROM (
    SELECT id, domain, CASE WHEN {{position}}(name, '+') > 1 THEN SUBSTR(name, 1, {{position}}(name, '+') - 1) ELSE name END AS name
    FROM (
        SELECT id, SUBSTR(email_key, 1, {{position}}(email_key, '@') - 1) AS name,
               SUBSTR(email_key, {{position}}(email_key, '@') + 1) AS domain
        FROM operators WHERE {{position}}(email_key, '@') > 1
    ) AS halves
) AS mail
WHERE mail.id = operators.id;

-- Without it the next statement would take time by the square of the operators.
CREATE INDEX operators_with_mailbox ON operators (mailbox);
UPDATE operators SET mailbox = NULL
WHERE EXISTS (SELECT 1 FROM operators AS other
              WHERE other.mailbox = operators.mailbox
                AND (other.created_at < operators.created_at
                     OR other.created_at = operators.created_at AND other.id < operators.id));
DROP INDEX operators_with_mailbox;

CREATE UNIQUE INDEX operators_by_mailbox ON operators (mailbox);
