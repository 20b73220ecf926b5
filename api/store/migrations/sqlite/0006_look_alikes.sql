-- Names were folded with more look-alikes (i, l and 1; vv and w). The interface closes the list, so each is folded anew.
-- The new fold tells more names apart than the one before, so none collides with another, not even while rows change.
UPDATE agents SET skeleton = replace(replace(replace(lower(name), '0', 'o'), '1', 'l'), 'rn', 'm');
