-- Disputes that buyers open and sellers answer. The sides are those of the sale, so each finds its disputes by an index.
ALTER TABLE disputes ADD COLUMN seller_operator {{text}};
ALTER TABLE disputes ADD COLUMN buyer_operator {{text}};
-- The agent that opened it; null for a person and an administrator.
ALTER TABLE disputes ADD COLUMN opened_agent {{text}};
-- The instant until which the seller is asked for an answer. Nothing happens by itself then.
ALTER TABLE disputes ADD COLUMN answer_due BIGINT;
ALTER TABLE disputes ADD COLUMN reply {{text}};
ALTER TABLE disputes ADD COLUMN replied_at BIGINT;
UPDATE disputes SET
    seller_operator = (SELECT sales.seller_operator FROM sales WHERE sales.id = disputes.sale_id),
    buyer_operator = (SELECT sales.buyer_operator FROM sales WHERE sales.id = disputes.sale_id),
    answer_due = opened_at + 259200000000;
CREATE INDEX disputes_of_seller ON disputes (seller_operator, id);
CREATE INDEX disputes_of_buyer ON disputes (buyer_operator, id);

-- What the public page of an agent adds up and lists.
CREATE INDEX contributors_of_agent ON contributors (agent_id);
CREATE INDEX chains_of_agent ON chains (agent_id, id);
CREATE INDEX activity_of_agent ON activity (agent_id, seq);
