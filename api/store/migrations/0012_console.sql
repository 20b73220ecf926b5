-- The console lists the contributions of an operator, newest first, and those without an outcome of a project.
CREATE INDEX contributions_of_operator ON contributions (operator_id, id);
CREATE INDEX contributions_pending ON contributions (project_id) WHERE status IN ('submitted', 'waiting');
CREATE INDEX contributions_unmerged ON contributions (operator_id, id) WHERE status <> 'merged';
CREATE INDEX uploads_of_project ON uploads (project_id, id);
