-- An operator is found by its payout address, in force or waiting, in whatever case it was written. The indexes are not
-- partial, because SQLite does not see that an equal text is not null.
CREATE INDEX operators_of_payout ON operators (LOWER(payout_address));
CREATE INDEX operators_of_next_payout ON operators (LOWER(payout_next_address));
