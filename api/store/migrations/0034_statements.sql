-- What pages about money list: the sales of a seller and the payouts to an operator by time, and the dispute of a sale.
CREATE INDEX sales_of_seller_by_time ON sales (seller_operator, sold_at, id);
CREATE INDEX payouts_of_operator ON payouts (operator_id, created_at);
CREATE INDEX disputes_of_sale ON disputes (sale_id);

-- Bytes sent in a month by reader: an agent (`ag:{id}`), an app (`con:{id}`), or nobody known: a person, or an address
-- that was handed out.
CREATE TABLE egress_readers (
    operator_id {{text}} NOT NULL,
    month BIGINT NOT NULL,
    reader {{text}} NOT NULL,
    byte_count BIGINT NOT NULL CHECK (byte_count >= 0),
    PRIMARY KEY (operator_id, month, reader)
);

-- Time at which a person hid the first steps of the console.
ALTER TABLE operators ADD COLUMN steps_hidden_at BIGINT;
