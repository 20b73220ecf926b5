-- Lists of tags: their length, their entries, and what is changed in them.

SELECT id, string_to_array(tags, ',') AS list FROM records ORDER BY id

SELECT id, (string_to_array(tags, ','))[1] AS first FROM records ORDER BY id

SELECT id, (string_to_array(tags, ','))[-1] AS last FROM records ORDER BY id

SELECT id, (string_to_array(tags, ','))[0] AS none FROM records ORDER BY id

SELECT id, (string_to_array(tags, ','))[99] AS none FROM records ORDER BY id

SELECT id, array_length(string_to_array(tags, ','), 1) AS n FROM records ORDER BY id

SELECT id, cardinality(string_to_array(tags, ',')) AS n FROM records ORDER BY id

SELECT id, coalesce(array_length(string_to_array(tags, ','), 1), 0) AS n FROM records ORDER BY id

SELECT id FROM records WHERE array_length(string_to_array(tags, ','), 1) > 1 ORDER BY id

SELECT id FROM records WHERE array_length(string_to_array(tags, ','), 1) IS NULL ORDER BY id

SELECT array_length(string_to_array('', ','), 1) AS l, cardinality(string_to_array('', ',')) AS c

SELECT string_to_array('', ',') AS a, string_to_array(',', ',') AS b, string_to_array('a,,b', ',') AS c

SELECT string_to_array('abc', NULL) AS a, string_to_array('abc', '') AS b

SELECT string_to_array('a,-,b', ',', '-') AS a, string_to_array('a,,b', ',', '') AS b

SELECT array_remove(string_to_array('a,b,a', ','), 'a') AS r, array_replace(string_to_array('a,b,a', ','), 'a', 'z') AS p

SELECT id, array_remove(string_to_array(tags, ','), 'red') AS r FROM records ORDER BY id

SELECT id, array_remove(string_to_array(tags, ','), '') AS r FROM records ORDER BY id

SELECT id, array_replace(string_to_array(tags, ','), (string_to_array(tags, ','))[1], 'x') AS r FROM records ORDER BY id

SELECT array_replace(ARRAY[1, NULL, 2, NULL], NULL, 0) AS filled, array_remove(ARRAY[1, NULL, 2], NULL) AS without

SELECT array_remove(ARRAY[1, 2, 1, 3], 1) AS a, array_remove(ARRAY[1, 2], 5) AS b

SELECT array_position(ARRAY['a', 'b', 'a'], 'a') AS a, array_position(ARRAY['a', 'b', 'a'], 'a', 2) AS b, array_position(ARRAY['a', 'b'], 'z') AS c

SELECT array_position(ARRAY[1, NULL, 3], NULL) AS n, array_positions(ARRAY[1, NULL, 3, NULL], NULL) AS all_n

SELECT array_positions(ARRAY['a', 'b', 'a'], 'a') AS a, array_positions(ARRAY['a', 'b'], 'z') AS b

SELECT id, array_position(string_to_array(tags, ','), 'blue') AS place FROM records ORDER BY id

SELECT id, array_append(string_to_array(tags, ','), station) AS list FROM records ORDER BY id

SELECT id, array_prepend(station, string_to_array(tags, ',')) AS list FROM records ORDER BY id

SELECT array_append(ARRAY[1, 2], 3) AS a, array_prepend(0, ARRAY[1, 2]) AS b, array_cat(ARRAY[1], ARRAY[2, 3]) AS c

SELECT array_append(NULL, 3) AS a, array_append(ARRAY[1], NULL) AS b

SELECT ARRAY[1, 2] || 3 AS a, 0 || ARRAY[1, 2] AS b, ARRAY[1] || ARRAY[2, 3] AS c

SELECT id, array_to_string(string_to_array(tags, ','), '; ') AS text FROM records ORDER BY id

SELECT array_to_string(ARRAY['a', NULL, 'b'], '-') AS skipped, array_to_string(ARRAY['a', NULL, 'b'], '-', '?') AS shown

SELECT array_to_string(ARRAY[1.5, 2.0, 3.25]::double precision[], ' ') AS text

SELECT array_to_string(array_agg(n ORDER BY id), ',') AS text FROM records

SELECT (ARRAY[10, 20, 30])[2] AS second, (ARRAY[10, 20, 30])[4] AS fourth, (ARRAY[10, 20, 30])[-2] AS minus

SELECT (ARRAY[10, 20, 30, 40])[2:3] AS middle, (ARRAY[10, 20, 30, 40])[3:] AS tail, (ARRAY[10, 20, 30, 40])[:2] AS head

SELECT (ARRAY[10, 20, 30])[0:1] AS a, (ARRAY[10, 20, 30])[-1:2] AS b, (ARRAY[10, 20, 30])[3:2] AS c

SELECT id, (string_to_array(tags, ','))[2:] AS rest FROM records ORDER BY id

SELECT id FROM records WHERE 'red' = ANY (string_to_array(tags, ',')) ORDER BY id

SELECT id FROM records WHERE string_to_array(tags, ',') @> ARRAY['red'] ORDER BY id

SELECT id FROM records WHERE array_position(string_to_array(tags, ','), 'red') IS NOT NULL ORDER BY id

SELECT array_ndims(ARRAY[1, 2]) AS d, array_ndims(ARRAY[[1, 2], [3, 4]]) AS dd

SELECT array_length(ARRAY[1, 2, 3], 1) AS a, array_length(ARRAY[[1, 2], [3, 4]], 2) AS b, array_length(ARRAY[1, 2], 2) AS c

SELECT cardinality(ARRAY[[1, 2], [3, 4]]) AS all_values, cardinality(ARRAY[1, NULL]) AS with_null

SELECT station, array_agg(id ORDER BY id) AS ids FROM records GROUP BY station ORDER BY station

SELECT station, array_agg(n ORDER BY id) AS ns, array_length(array_agg(n ORDER BY id), 1) AS c FROM records GROUP BY station ORDER BY station

SELECT station, (array_agg(n ORDER BY id))[1] AS first, (array_agg(n ORDER BY id DESC))[1] AS last FROM records GROUP BY station ORDER BY station

SELECT station, cardinality(array_agg(DISTINCT ok)) AS kinds FROM records GROUP BY station ORDER BY station

SELECT array_agg(n) AS ns, array_agg(n) IS NULL AS nothing FROM records WHERE false

SELECT station, string_agg(tags, '|' ORDER BY id) AS tags FROM records GROUP BY station ORDER BY station

SELECT id, ARRAY[n, m] AS pair, (ARRAY[n, m])[1] AS n FROM records ORDER BY id

SELECT id, ARRAY[x, y] = ARRAY[y, x] AS same FROM records WHERE x IS NOT NULL AND y IS NOT NULL ORDER BY id

SELECT (string_to_array(tags, ','))[1] AS tag, count(*) AS c FROM records GROUP BY 1 ORDER BY 1

SELECT id, split_part(tags, ',', 1) AS a, split_part(tags, ',', 2) AS b, split_part(tags, ',', -1) AS last FROM records ORDER BY id

SELECT id, length(tags) - length(replace(tags, ',', '')) + 1 AS parts FROM records WHERE tags <> '' ORDER BY id

SELECT max(cardinality(string_to_array(tags, ','))) AS most, min(cardinality(string_to_array(tags, ','))) AS least FROM records

SELECT array_length(NULL::int[], 1) AS a, cardinality(NULL::int[]) AS b

SELECT array_length(ARRAY[]::int[], 1) AS a, cardinality(ARRAY[]::int[]) AS b

-- Texts of arrays, and distinct values in their order.
SELECT array['a,b', null]::text AS t

SELECT array['a b', '', 'NULL', 'x"y', 'back\slash', '{']::text AS t

SELECT array[1.5, NULL]::text AS t, array[true, false]::text AS u, array[]::text[]::text AS v

SELECT array_agg(DISTINCT station) AS a FROM records

SELECT array_agg(DISTINCT n) AS a, string_agg(DISTINCT station, ',') AS s FROM records

SELECT string_agg(DISTINCT (1 / n)::text, ',') FILTER (WHERE n <> 0) AS s FROM records

SELECT string_agg(DISTINCT station, ',' ORDER BY station DESC) AS s FROM records

SELECT array_agg(DISTINCT x) AS a FROM records

SELECT array_agg(DISTINCT n % 3) AS a FROM records

SELECT array_agg(sum_n ORDER BY sum_n)::text AS a FROM (SELECT station, sum(n) AS sum_n FROM records GROUP BY station) t

SELECT array[array[1, 2], array[3, 4]]::text AS t, string_to_array('a,,b c', ',')::text AS u, NULL::int[]::text AS v

SELECT array_agg(DISTINCT until - at) IS NULL AS a, count(DISTINCT until - at) AS b FROM records

SELECT array_agg(DISTINCT station) FILTER (WHERE n > 3) AS a, array_agg(DISTINCT ok) AS b FROM records
