-- Ranks, neighbours, powers, and the two zeros of a double.

SELECT id, rank() OVER (ORDER BY round(x)) AS r FROM records ORDER BY id

SELECT id, dense_rank() OVER (ORDER BY x * 0) AS r FROM records WHERE x IS NOT NULL ORDER BY id

SELECT id, rank() OVER (PARTITION BY station ORDER BY x DESC NULLS LAST) AS r FROM records ORDER BY id

SELECT station, id, row_number() OVER (PARTITION BY station ORDER BY n DESC NULLS LAST, id) AS place FROM records ORDER BY station, place, id

SELECT id, percent_rank() OVER (ORDER BY n) AS p FROM records WHERE n IS NOT NULL ORDER BY id

SELECT id, cume_dist() OVER (ORDER BY round(x)) AS c FROM records WHERE x IS NOT NULL ORDER BY id

SELECT id, ntile(4) OVER (ORDER BY id) AS quarter FROM records ORDER BY id

-- The third largest of each station.
SELECT station, id, x FROM (SELECT station, id, x, row_number() OVER (PARTITION BY station ORDER BY x DESC NULLS LAST, id) AS place FROM records) AS ranked WHERE place = 3 ORDER BY station NULLS LAST

SELECT count(DISTINCT x * 0) AS c FROM records

SELECT count(DISTINCT round(x / 1000000)) AS c FROM records

SELECT x * 0 AS zero, count(*) AS rows FROM records WHERE x IS NOT NULL GROUP BY x * 0

SELECT round(x) AS r, count(*) AS rows FROM records GROUP BY round(x) ORDER BY r

SELECT DISTINCT x * 0 AS zero FROM records WHERE x IS NOT NULL AND x > 0

SELECT count(*) AS c FROM (SELECT DISTINCT x * 0 AS z FROM records WHERE x IS NOT NULL) AS zeros

SELECT count(*) AS c FROM (SELECT x * 0 AS z FROM records WHERE x > 0 UNION SELECT x * 0 FROM records WHERE x < 0) AS zeros

SELECT count(*) AS c FROM (SELECT x * 0 AS z FROM records WHERE x > 0 INTERSECT SELECT x * 0 FROM records WHERE x < 0) AS zeros

SELECT count(*) AS c FROM (SELECT x * 0 AS z FROM records WHERE x > 0 EXCEPT SELECT x * 0 FROM records WHERE x < 0) AS zeros

SELECT count(*) AS c FROM records a JOIN records b ON a.x * 0 = b.y * 0

SELECT id FROM records WHERE x * 0 = 0 ORDER BY id

SELECT id, CASE x * 0 WHEN 0 THEN 'zero' ELSE 'other' END AS c FROM records ORDER BY id

SELECT id, CASE WHEN x * -0.0 = 0 THEN 'zero' ELSE 'other' END AS c FROM records ORDER BY id

SELECT id, nullif(round(x), 0) AS r FROM records ORDER BY id

SELECT id, nullif(x * 0, 0) AS r FROM records ORDER BY id

SELECT id FROM records WHERE x * 0 IN (SELECT y * 0 FROM records WHERE y < 0) ORDER BY id

SELECT id FROM records WHERE round(x) IN (0, 1, 2) ORDER BY id

SELECT id FROM records WHERE x * 0 BETWEEN 0 AND 0 ORDER BY id

SELECT id, x * 0 IS DISTINCT FROM 0 AS differs FROM records ORDER BY id

SELECT id, greatest(x * 0, 0) >= 0 AS g, least(x * 0, 0) <= 0 AS l FROM records ORDER BY id

SELECT round(x) AS r, min(id) AS first, max(id) AS last FROM records WHERE x BETWEEN -1 AND 1 GROUP BY 1 ORDER BY 1

SELECT id, count(*) OVER (PARTITION BY x * 0) AS c FROM records WHERE x IS NOT NULL ORDER BY id

SELECT id, sum(id) OVER (ORDER BY round(x)) AS s FROM records WHERE x IS NOT NULL ORDER BY id

SELECT id, count(*) OVER (ORDER BY x * 0 RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS c FROM records WHERE x IS NOT NULL ORDER BY id

SELECT sqrt(sum(n ^ 2)) AS length FROM records WHERE n BETWEEN -1000 AND 1000

SELECT id, n ^ 2 AS square FROM records WHERE n BETWEEN -1000 AND 1000 ORDER BY id

SELECT 2 ^ 3 ^ 2 AS left_first, -2 ^ 2 AS minus_first, 2 * 3 ^ 2 AS power_first, 2 ^ -1 AS half

SELECT id, 10 ^ (m % 5) AS scale FROM records WHERE m >= 0 ORDER BY id

SELECT id, x ^ 2 + y ^ 2 AS r2 FROM records WHERE x BETWEEN -1000 AND 1000 AND y BETWEEN -1000 AND 1000 ORDER BY id

SELECT id, (x ^ 2 + y ^ 2) ^ 0.5 AS r FROM records WHERE x BETWEEN -1000 AND 1000 AND y BETWEEN -1000 AND 1000 ORDER BY id

SELECT id, n # m AS differing FROM records ORDER BY id

SELECT 5 # 3 AS x, 5 | 2 # 1 AS y, 6 & 3 # 1 AS z, 1 << 2 + 1 AS shifted, 5 & 3 + 4 AS w

SELECT id, 4 # 1 + 2 AS a, 2 ^ 2 * 3 AS b, 100 - 2 ^ 3 AS c FROM records WHERE id = 1

SELECT id, (id # 1) = id + 1 AS even FROM records ORDER BY id

SELECT id, lag(x) OVER (ORDER BY id) AS before, lead(x) OVER (ORDER BY id) AS after FROM records ORDER BY id

SELECT id, lag(n, -1) OVER (ORDER BY id) AS next, lead(n, -1) OVER (ORDER BY id) AS previous FROM records ORDER BY id

SELECT id, lead(station, 2, 'none') OVER (ORDER BY id) AS two_on FROM records ORDER BY id

SELECT id, lag(n, 0) OVER (ORDER BY id) AS same FROM records ORDER BY id

SELECT id, x - lag(x) OVER (PARTITION BY station ORDER BY id) AS change FROM records ORDER BY id

SELECT id, first_value(x) OVER (PARTITION BY station ORDER BY id) AS f, last_value(x) OVER (PARTITION BY station ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM records ORDER BY id

SELECT id, nth_value(n, 2) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM records ORDER BY id

SELECT id, nth_value(station, 3) OVER (PARTITION BY ok ORDER BY id) AS third FROM records ORDER BY id

SELECT id, max(n) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS recent FROM records ORDER BY id

SELECT id, avg(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS smooth FROM records WHERE x BETWEEN -1000 AND 1000 ORDER BY id

SELECT station, max(x) AS best, rank() OVER (ORDER BY max(x) DESC NULLS LAST) AS place FROM records GROUP BY station ORDER BY place, station

SELECT round(x * 0) AS z, ceil(-0.4::double precision) AS c, round(-0.4::double precision) AS r FROM records WHERE x > 0 LIMIT 1

SELECT id, -x AS minus FROM records WHERE x = 0 ORDER BY id

SELECT DISTINCT ON (round(x)) round(x) AS r, id FROM records WHERE x IS NOT NULL ORDER BY round(x), id

SELECT count(*) AS c FROM records a JOIN records b USING (x)

SELECT a.id, b.id FROM records a JOIN records b ON round(a.x) = round(b.x) AND a.id < b.id ORDER BY 1, 2

SELECT array_agg(id ORDER BY round(x), id) AS ids FROM records WHERE x IS NOT NULL

SELECT id, count(*), count(*) FROM records GROUP BY id ORDER BY id

SELECT id, x::int, x::text FROM records WHERE x BETWEEN -1000 AND 1000 ORDER BY id

SELECT station AS name, count(*) AS name FROM records GROUP BY station ORDER BY station

SELECT a.*, b.id FROM (SELECT id, n FROM records) a JOIN (SELECT id FROM records) b ON a.id = b.id ORDER BY a.id

SELECT id, id FROM records ORDER BY 1

SELECT max(n), max(m), max(n) FROM records

SELECT count(*) FROM (SELECT x::int, x::bigint FROM records WHERE x BETWEEN -1000 AND 1000) AS casts

SELECT id, sum(n) OVER (), sum(n) OVER (ORDER BY id) FROM records ORDER BY id

SELECT lower(station), upper(station), lower(station) FROM records ORDER BY id

-- Ranks are integers with a sign.

SELECT id, row_number() OVER (ORDER BY id) - 5 AS place FROM records ORDER BY id

SELECT id, rank() OVER (ORDER BY n) - dense_rank() OVER (ORDER BY n) AS gap, - row_number() OVER (ORDER BY id) AS back FROM records ORDER BY id

SELECT id, n - row_number() OVER (ORDER BY n, id) AS island FROM records WHERE n IS NOT NULL ORDER BY id

SELECT id, coalesce(CASE WHEN ok THEN row_number() OVER (ORDER BY id) END, -1) AS place FROM records ORDER BY id

SELECT id, CASE WHEN ok THEN rank() OVER (ORDER BY n) ELSE n END AS either FROM records ORDER BY id

SELECT row_number() OVER (ORDER BY id) AS k FROM records UNION SELECT n FROM records ORDER BY k

SELECT k, pg FROM (SELECT row_number() OVER (ORDER BY id) AS k, n AS pg FROM records) AS t WHERE k = pg ORDER BY k

SELECT id, greatest(ntile(4) OVER (ORDER BY id), 2) AS quarter, ntile(3) OVER (ORDER BY id) - 2 AS third FROM records ORDER BY id

SELECT id, abs(row_number() OVER (ORDER BY n, id) - row_number() OVER (ORDER BY m, id)) AS moved FROM records ORDER BY id

SELECT id, row_number() OVER (ORDER BY id) / 2 AS half, row_number() OVER (ORDER BY id) % 3 AS rest, row_number() OVER (ORDER BY id)::text AS t FROM records ORDER BY id

SELECT id, lag(r, 1, -1) OVER (ORDER BY id) AS before FROM (SELECT id, rank() OVER (ORDER BY n) AS r FROM records) AS ranked ORDER BY id

SELECT regr_count(y, x) - 100 AS missing, coalesce(regr_count(y, x), -1) AS c FROM records

SELECT a.k FROM (SELECT row_number() OVER (ORDER BY id) AS k FROM records) AS a JOIN (SELECT n FROM records) AS b ON a.k - 10 = b.n ORDER BY a.k

-- A name of two columns.
SELECT n AS a, m AS a FROM records ORDER BY a

SELECT n AS id, id FROM records ORDER BY id

SELECT a.id, b.id FROM records a JOIN records b ON a.n = b.m ORDER BY id

SELECT id, records.id FROM records ORDER BY id

SELECT n AS a, m AS a, id FROM records ORDER BY id
