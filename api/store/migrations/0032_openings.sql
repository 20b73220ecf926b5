-- Balances of accounts after the months whose movements left the database for files, and the number of the last of these
-- movements. Months are archived one after the other, so the newest opening of an account is where its journal begins.
CREATE TABLE ledger_openings (
    account {{text}} NOT NULL REFERENCES ledger_accounts (id),
    -- The archived month, counted from January 1970.
    month BIGINT NOT NULL,
    seq BIGINT NOT NULL CHECK (seq > 0),
    balance BIGINT NOT NULL CHECK (balance >= 0),
    PRIMARY KEY (account, month)
);
CREATE INDEX ledger_openings_of_month ON ledger_openings (month);

{{append_only_until ledger_transfers month ledger_openings}}
