-- A line below the title of a project.
ALTER TABLE projects ADD COLUMN subtitle {{text}};
