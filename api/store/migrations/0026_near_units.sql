-- A version that passed its review may be marked as near to a published one; searches rank it below.
ALTER TABLE units ADD COLUMN near_unit {{text}};
-- The embedder whose vectors of the version are beside the platform's table. Of versions that have none of the present one, they
-- are made later.
ALTER TABLE units ADD COLUMN embedder {{text}};
