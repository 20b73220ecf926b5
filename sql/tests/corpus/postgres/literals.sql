-- Numbers with a point beside integers, and behind WITH, VALUES and CASE.

SELECT 9007199254740993 = 9007199254740992.0 AS a, 9223372036854775807 > 9223372036854775806.0 AS b, 9007199254740993 <> 9007199254740993.0 AS c

SELECT id, m = 9223372036854775806.0 AS a, m > 9223372036854775806.0 AS b, m >= 9223372036854775807.0 AS c FROM records ORDER BY id

SELECT count(*) FROM records WHERE m > 9223372036854775806.0

SELECT id FROM records WHERE m IN (9223372036854775806.0, 1.0) ORDER BY id

SELECT id FROM records WHERE m BETWEEN 9223372036854775806.5 AND 9223372036854775807.5 ORDER BY id

SELECT id, nullif(m, 9223372036854775806.0) AS a, m IS DISTINCT FROM 9223372036854775808.0 AS b FROM records ORDER BY id

SELECT id, CASE m WHEN 9223372036854775808.0 THEN 'beyond' WHEN 9223372036854775807.0 THEN 'last' ELSE 'other' END AS c FROM records ORDER BY id

SELECT id FROM records WHERE m > 9000000000000000000.0 ORDER BY id

SELECT id FROM records WHERE m < -9007199254740993.5 ORDER BY id

SELECT id FROM records WHERE n > 2.5 AND n < 1e300 ORDER BY id

SELECT 0.1234567890123456789 = 0.1234567890123456788 AS a, 0.1234567890123456789 - 0.1234567890123456788 > 0 AS b

SELECT id, x > 0.1000000000000000055 AS a, x * 0.1000000000000000055 AS b FROM records WHERE id < 20 ORDER BY id

WITH v AS (SELECT 4.35 a) SELECT floor(a * 100) FROM v

WITH v(a) AS (VALUES (4.35), (1.1)) SELECT floor(a * 100) AS f, a AS same FROM v ORDER BY 1

SELECT floor(t.a * 100) AS f FROM (SELECT 4.35 AS a) t

SELECT floor((SELECT 4.35) * 100) AS f

WITH v(a, b) AS (VALUES (0.1, 1), (0.2, 2), (NULL, 3)) SELECT sum(a) = 0.3 AS same, sum(a) AS total, avg(a) AS mean, max(b) AS b FROM v

WITH v(a) AS (VALUES (0.5), (1.5), (2.5), (-2.5)) SELECT a, round(a) AS r FROM v ORDER BY a

WITH v(a) AS (VALUES (2), (0.5)) SELECT a / 3 > 0.66 AS a, x * a AS b, x > a AS c FROM v, records WHERE id < 10 ORDER BY id, v.a

WITH v(a) AS (VALUES (1.5), (2.5)) SELECT id, a FROM records JOIN v ON x = a ORDER BY id

WITH v(x) AS (VALUES (1.5), (2.5)) SELECT id, v.x FROM records JOIN v USING (x) ORDER BY id

SELECT sum(CASE WHEN id <= 20 THEN 0.1 END) = 2.0 AS same FROM records

SELECT sum(CASE WHEN ok THEN 0.1 ELSE 0.2 END) AS total, avg(CASE WHEN ok THEN 1.0 ELSE 0 END) AS share FROM records

SELECT id, CASE WHEN ok THEN 0.5 ELSE 2.5 END AS a, round(CASE WHEN ok THEN 0.5 ELSE 2.5 END) AS b, x * CASE WHEN ok THEN 0.1 ELSE 0.3 END AS c FROM records WHERE id < 20 ORDER BY id

SELECT floor(coalesce(NULL, 4.35) * 100) AS a, round(greatest(0.5, 2.5)) AS b, floor(least(4.35, 5.5) * 100) AS c

WITH v AS (SELECT 0.5 AS a UNION ALL SELECT 2.5 UNION ALL SELECT 3) SELECT round(a) AS r FROM v ORDER BY 1

WITH v AS (SELECT 0.5 AS a UNION ALL SELECT x FROM records WHERE id < 10) SELECT a FROM v ORDER BY 1

SELECT id FROM records WHERE x IN (SELECT 2.5) ORDER BY id

WITH v(a) AS (VALUES (1.5), (2.5)) SELECT a::text AS t, a || 'x' AS c, stddev(a) OVER () AS s, array[a, 1] AS l FROM v ORDER BY 1

WITH v(a) AS (VALUES (1.5), (2.5)) SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) AS m, min(a) AS low, sqrt(max(a)) AS root FROM v

SELECT 0.1::numeric * 0.1::numeric * 0.1::numeric AS a, n::numeric * n::numeric * n::numeric AS b FROM records WHERE id < 10 ORDER BY id

SELECT 0.285::real::numeric::text AS a, 1.1::real::numeric + 1 AS b

SELECT 1e400::float8

SELECT 1e-400::float8

SELECT id, ok = 'true' AS a, 'no' <> ok AS b FROM records ORDER BY id

SELECT ok = 'perhaps' AS a FROM records

-- Numbers with a point on one side of a set operation, a CASE or IN (SELECT …).
SELECT 1 AS a UNION SELECT 1.5 ORDER BY a

SELECT n FROM records UNION SELECT 1.5 ORDER BY 1

SELECT 9007199254740993 AS a UNION SELECT 0.5 ORDER BY a

SELECT n + 9007199254740992 AS a FROM records UNION ALL SELECT 0.5 ORDER BY a

SELECT id FROM records WHERE x IN (SELECT 0.5) ORDER BY id

SELECT id FROM records WHERE n IN (SELECT 3.0) ORDER BY id

SELECT id FROM records WHERE (n / 10.0) IN (SELECT 0.3) ORDER BY id

SELECT coalesce(1, 2.5) AS a, greatest(1, 2.5, 2) AS b, CASE WHEN true THEN 1 ELSE 0.5 END AS c

SELECT CASE WHEN n > 3 THEN n ELSE 0.5 END AS c FROM records ORDER BY id

SELECT coalesce(n, 0.1) + 0.2 AS c FROM records ORDER BY id

SELECT id FROM records WHERE x IN (SELECT y FROM records) ORDER BY id

SELECT id FROM records WHERE x IN (SELECT sum(n) / 100.0 FROM records GROUP BY station) ORDER BY id

SELECT id FROM records WHERE x NOT IN (SELECT 0.5) AND id < 20 ORDER BY id

SELECT id FROM records WHERE n IN (SELECT n / 1.0 FROM records WHERE id < 10) ORDER BY id
