-- Numbers: whole ones, decimals and doubles.

SELECT 5 / 2 AS a, -5 / 2 AS b, 5 % 3 AS c, -7 % 3 AS d, 7 % -3 AS e

SELECT 5 / 2.0 AS a, 5.0 / 2 AS b, 1 / 3.0 AS c, 2 / 3.0 * 3 AS d

SELECT 0.1 + 0.2 = 0.3 AS same, 0.1 + 0.2 AS total, 1.1 * 3 AS three

SELECT round(2.5) AS a, round(3.5) AS b, round(-2.5) AS c, round(0.5) AS d

SELECT round(2.675, 2) AS a, round(1.005, 2) AS b, round(-1.255, 2) AS c, round(1234.5, -2) AS d

SELECT trunc(2.99) AS a, trunc(-2.99) AS b, trunc(2.999, 2) AS c, floor(-2.5) AS d, ceil(-2.5) AS e

SELECT floor(0.29 * 100) AS a, ceil(1.1 * 10) AS b, floor(4.35 * 100) AS c

SELECT avg(n) * 3 / 2 AS a, avg(n) + 1 AS b, avg(n) - 0.5 AS c FROM records

SELECT round(avg(n), 2) AS mean, round(avg(n)) AS whole, trunc(avg(n), 1) AS cut FROM records

SELECT station, round(avg(n), 1) AS mean FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, round(avg(n)) AS mean, avg(n)::int AS whole FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT sum(n) % 7 AS rest, sum(n) / 7 AS part, sum(n) / 7 * 7 AS back FROM records

SELECT sum(n) / 2 AS half, count(*) / 2 AS whole_half, max(n) / 2 AS max_half FROM records

SELECT sum(m) AS total FROM records

SELECT station, sum(m) AS total FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT sum(m) AS total FROM records WHERE m > 0

SELECT avg(m) AS mean FROM records WHERE id BETWEEN 50 AND 53

SELECT sum(n) + sum(m) AS both, sum(n) - sum(m) AS less FROM records WHERE id < 50

SELECT n + m AS a, n - m AS b, n * m AS c, n / nullif(m, 0) AS d, n % nullif(m, 0) AS e FROM records WHERE id < 50 ORDER BY id

SELECT n / nullif(m, 0)::float AS a, n::float / nullif(m, 0) AS b, n::numeric / nullif(m, 0) AS c FROM records WHERE id < 50 ORDER BY id

SELECT id, n * 1.5 AS a, n / 4.0 AS b, n + 0.25 AS c, n - 0.75 AS d FROM records WHERE id < 50 ORDER BY id

SELECT id, round(n / 2.0) AS half FROM records WHERE id < 50 ORDER BY id

SELECT id, round(n * 0.125, 2) AS eighth FROM records WHERE id < 50 ORDER BY id

SELECT id, round(y::numeric, 1) AS y, round(x::numeric, 2) AS x FROM records WHERE abs(x) < 1e9 ORDER BY id

SELECT id, y::int AS whole, y::bigint AS large FROM records WHERE y IS NOT NULL ORDER BY id

SELECT id, x::numeric(10, 2) AS x FROM records WHERE abs(x) < 1000 ORDER BY id

SELECT id, (y * 100)::int AS cents FROM records WHERE abs(y) < 1000 ORDER BY id

SELECT sum(y::numeric(12, 2)) AS total, avg(y::numeric(12, 2)) AS mean FROM records

SELECT sum(round(y::numeric, 1)) AS total FROM records

SELECT CASE WHEN n > 5 THEN n ELSE 0.5 END AS a FROM records WHERE id < 20 ORDER BY id

SELECT coalesce(n, 0.5) AS a, coalesce(n, x) AS b, coalesce(x, n) AS c FROM records WHERE id IN (14, 26, 49, 30) ORDER BY id

SELECT greatest(n, 2.5) AS a, least(n, y) AS b, greatest(n, m, 3) AS c FROM records WHERE id < 40 ORDER BY id

SELECT n FROM records WHERE id < 4 UNION ALL SELECT 0.5 UNION ALL SELECT avg(n) FROM records WHERE id < 4 ORDER BY 1

SELECT sum(n) FROM records WHERE id < 4 UNION SELECT max(n) FROM records WHERE id < 4 ORDER BY 1

SELECT station FROM records GROUP BY station HAVING avg(n) > 4.5 ORDER BY station

SELECT id FROM records WHERE n > (SELECT avg(n) FROM records) ORDER BY id

SELECT id FROM records WHERE n = 2.5 * 2 ORDER BY id

SELECT id FROM records WHERE n * 0.1 = 0.3 ORDER BY id

SELECT id FROM records WHERE n / 2.0 > 2.4 AND n / 2.0 < 3.6 ORDER BY id

SELECT id, n BETWEEN 1.5 AND 3.5 AS within, n IN (1.0, 3.0) AS one_of FROM records WHERE id < 20 ORDER BY id

SELECT sum(n) = 3000 AS a, sum(n) > 1e3 AS b, avg(n) BETWEEN 0 AND 1000.5 AS c FROM records

SELECT sum(n)::int AS a, sum(n)::bigint AS b, sum(n)::text AS c, sum(n)::float AS d FROM records

SELECT power(n, 2) AS square, sqrt(abs(n)) AS root, n * n AS product FROM records WHERE id < 20 ORDER BY id

SELECT sqrt(avg(n * n) - avg(n) * avg(n)) AS deviation, stddev_pop(n) AS built_in FROM records

SELECT stddev(n) AS s, variance(n) AS v, round(stddev(n), 3) AS rounded FROM records

SELECT id, n - avg(n) OVER () AS off, round(n - avg(n) OVER (), 2) AS rounded FROM records WHERE station = 'lima' ORDER BY id

SELECT id, avg(n) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving FROM records WHERE station = 'lima' ORDER BY id

SELECT id, sum(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) / 3 AS smooth FROM records WHERE station = 'lima' ORDER BY id

SELECT id, lag(n) OVER (ORDER BY id) AS before, (n - lag(n) OVER (ORDER BY id)) * 100.0 / nullif(lag(n) OVER (ORDER BY id), 0) AS growth FROM records WHERE station = 'Oslo' ORDER BY id

SELECT 9223372036854775807 + 1

SELECT m + 1 FROM records WHERE id = 51

SELECT 3000000000::int

SELECT 70000::smallint

SELECT 1 / 0

SELECT 1 / 0.0

SELECT sum(n) / (count(*) - count(*)) FROM records

SELECT avg(DISTINCT n) AS a, sum(DISTINCT n) AS b, count(DISTINCT n) AS c FROM records

SELECT sum(n * 0.5) AS a, avg(n * 0.5) AS b, sum(x * 0.5) AS c FROM records WHERE id BETWEEN 33 AND 42

SELECT mod(17, 5) AS a, mod(-17, 5) AS b, div(17, 5) AS c, abs(-2.5) AS d, sign(-2.5) AS e

SELECT '12.50'::numeric * 2 AS a, '12.50'::numeric(10, 1) AS b, '7'::int + 1 AS c

SELECT sum(note::numeric) AS total FROM records WHERE note ~ '^-?[0-9]+(\.[0-9]+)?$' AND id < 50

SELECT 12345678901234567890.5 + 1 AS a, 99999999999.99 * 100 AS b

SELECT n, count(*) FROM records GROUP BY n HAVING count(*) > sum(n) / 2 ORDER BY n

SELECT n / 2.0 AS half, count(*) FROM records WHERE id < 50 GROUP BY n / 2.0 ORDER BY half NULLS LAST

SELECT DISTINCT round(n / 3.0, 1) AS third FROM records ORDER BY third NULLS LAST

SELECT max(avg_n) AS best FROM (SELECT station, avg(n) AS avg_n FROM records GROUP BY station) t

SELECT station, avg(n) AS mean, rank() OVER (ORDER BY avg(n) DESC NULLS LAST) AS place FROM records GROUP BY station ORDER BY place, station

SELECT min(n) AS a, max(n) AS b, max(n) - min(n) AS span, (max(n) + min(n)) / 2 AS middle, (max(n) + min(n)) / 2.0 AS exact FROM records WHERE id < 50

-- Quotients by a number with a point.

SELECT id, n / 2.0 AS half, n / 2.5 AS part, n / 0.3 AS third, n / -7.0 AS seventh FROM records ORDER BY id

SELECT id, m / 3.0 AS third, round(m / 3.0, 4) AS r, m / 2.0 AS t FROM records WHERE m BETWEEN -1000 AND 1000 ORDER BY id

SELECT id, n * 1.1 / 3 AS p, (n / 7.0) * 7.0 AS q, n / 1e-3 AS large, n::numeric / 1000000007 AS small FROM records ORDER BY id

SELECT id, x * (n / 4.0) AS p, (n / 3.0)::float8 AS d, sqrt(abs(n / 3.0)) AS s FROM records ORDER BY id
