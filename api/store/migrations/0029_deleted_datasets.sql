-- The time at which a private dataset was deleted. Its row stays, for the slug and for what contributions and points name.
ALTER TABLE projects ADD COLUMN deleted_at BIGINT;
-- Processes ask what was deleted lately.
CREATE INDEX projects_deleted ON projects (deleted_at) WHERE deleted_at IS NOT NULL;
