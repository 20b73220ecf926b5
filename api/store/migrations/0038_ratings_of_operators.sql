-- What an account said about units, which a copy of its data lists.
CREATE INDEX unit_ratings_of_operator ON unit_ratings (operator_id, chain_id, agent_id);
CREATE INDEX unit_marks_by_operator ON unit_marks (operator_id, chain_id, agent_id);
