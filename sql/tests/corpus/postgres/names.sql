-- Names that two columns share, and what a name means in ORDER BY and behind JOIN … USING.

WITH r(m) AS (VALUES ('9007199254740993'), ('2.5')) SELECT m::numeric, m::numeric::bigint FROM r ORDER BY 2

SELECT sum(n::numeric), sum(n::numeric)::bigint FROM records

SELECT id, id, n::numeric FROM records ORDER BY records.id LIMIT 5

WITH r(m) AS (VALUES ('0.5'), ('2.5'), ('4.5')) SELECT round(m::numeric), round(m::numeric)::int FROM r ORDER BY 2

WITH r(m) AS (VALUES ('9007199254740993.5')) SELECT trunc(m::numeric), trunc(m::numeric)::text FROM r

WITH r(m) AS (VALUES ('9007199254740993')) SELECT mod(m::numeric, 2)::text, (m::numeric % 2)::text FROM r

SELECT true, true, sum(m::numeric) FROM records

SELECT m::numeric + 1, m::numeric + 1, (m::numeric + 1)::text FROM records WHERE id IN (50, 51, 52) ORDER BY 3

WITH r(x) AS (VALUES (-5), (1), (3)) SELECT abs(x) AS x FROM r ORDER BY x * 1

SELECT -id AS id FROM records ORDER BY id + 0

SELECT -id AS id FROM records ORDER BY id + 0 LIMIT 5

SELECT -id AS id FROM records ORDER BY id LIMIT 5

SELECT -id AS id, n FROM records ORDER BY abs(id), 2 LIMIT 5

SELECT -id AS id FROM records ORDER BY records.id LIMIT 5

SELECT upper(station) AS station, id FROM records ORDER BY lower(station) || 'x' NULLS LAST, id

SELECT station, max(n) AS n FROM records GROUP BY station ORDER BY max(n) DESC NULLS LAST, station

SELECT station, sum(id) AS n FROM records GROUP BY station ORDER BY sum(n::numeric) NULLS LAST, station

SELECT t.id FROM (SELECT -id AS id FROM records ORDER BY id + 0 LIMIT 3) t ORDER BY 1

WITH late AS (SELECT -id AS id, n AS m FROM records ORDER BY id * -1 LIMIT 3) SELECT id, m FROM late ORDER BY id

SELECT (SELECT -id AS id FROM records ORDER BY id + 0 LIMIT 1) AS first

SELECT id FROM records WHERE id IN (SELECT 10 - id AS id FROM records ORDER BY id + 0 LIMIT 3) ORDER BY id

WITH a(t, k) AS (VALUES ('b', 1), ('a', 2)), b(z, k) AS (VALUES ('p', 1), ('q', 2)) SELECT * FROM a JOIN b USING (k) ORDER BY 1

WITH a(t, k) AS (VALUES ('b', 1), ('a', 2)), b(z, k) AS (VALUES ('p', 1), ('q', 2)) SELECT * FROM a NATURAL JOIN b ORDER BY 1

WITH a(t, k) AS (VALUES ('b', 1), ('a', 2)), b(z, k) AS (VALUES ('p', 1)) SELECT * FROM a LEFT JOIN b USING (k) ORDER BY 1

WITH a(t, k, j) AS (VALUES ('b', 1, 7), ('a', 2, 8)), b(z, k) AS (VALUES ('p', 1), ('q', 2)), c(j, y) AS (VALUES (8, 'm'), (7, 'n')) SELECT * FROM a JOIN b USING (k) JOIN c USING (j) ORDER BY 1

WITH a(t, k, j) AS (VALUES ('b', 1, 7), ('a', 2, 8)), b(z, j, k) AS (VALUES ('p', 7, 1), ('q', 8, 2)) SELECT *, 1 AS one FROM a JOIN b USING (j, k) ORDER BY 1 DESC

SELECT u.* FROM (SELECT * FROM (VALUES ('b', 1), ('a', 2)) AS a(t, k) JOIN (VALUES ('p', 1), ('q', 2)) AS b(z, k) USING (k)) u ORDER BY 1

SELECT id, r2.n FROM records r JOIN records r2 USING (id) WHERE id < 3 ORDER BY id

SELECT id, count(*) FROM records r JOIN records r2 USING (id) WHERE id + 0 < 5 GROUP BY id HAVING max(id) > 1 ORDER BY id * -1

SELECT id, lag(id, 1, 0.5) OVER (ORDER BY id) AS before FROM records ORDER BY id LIMIT 3

SELECT id, lead(id, 1, -1.7) OVER (ORDER BY id DESC) AS after FROM records ORDER BY id LIMIT 3

SELECT id, lag(n, 2, 0.25) OVER (ORDER BY id) * 2 AS twice FROM records ORDER BY id LIMIT 4

SELECT id, lag(x, 1, 0.5) OVER (ORDER BY id) AS a, lag(n, 1, 0) OVER (ORDER BY id) AS b, lag(0.5, 1, 2) OVER (ORDER BY id) AS c FROM records ORDER BY id LIMIT 4

SELECT id, lag(id, 1, 0.5::float8) OVER (ORDER BY id) AS a, lag(id, 1, NULL) OVER (ORDER BY id) AS b FROM records ORDER BY id LIMIT 3

SELECT station, lag(sum(n), 1, 0.5) OVER (ORDER BY station) AS before FROM records GROUP BY station ORDER BY station

SELECT string_agg(DISTINCT tags, ',') AS tags FROM records WHERE id < 40

SELECT station, string_agg(DISTINCT note, '; ') AS notes FROM records GROUP BY station ORDER BY station

SELECT cardinality(array_agg(DISTINCT until - at)) AS lengths FROM records
