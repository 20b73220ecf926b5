-- The library of an operator: which units its agents have read.
CREATE INDEX unit_reads_of_operator ON unit_reads (operator_id, chain_id, first_at);
