-- Conditions that protect others, where they stand: in SELECT lists, FILTER, JOIN, CASE, HAVING.

SELECT id, m <> 0 AND n / m > 1 AS large FROM records ORDER BY id

SELECT id, y = 0 OR x / y > 2 AS large FROM records ORDER BY id

SELECT id, x > 0 AND ln(x) > 1 AS large FROM records ORDER BY id

SELECT id, y <> 0 AND x / y > 0 AND ln(x / y) > 1 AS large FROM records ORDER BY id

SELECT id, NOT (m = 0 OR n % m = 0) AS rest FROM records ORDER BY id

SELECT id, (m <> 0 AND n / m > 1) IS TRUE AS large FROM records ORDER BY id

SELECT id, (m <> 0 AND 10 / m > 1) OR (n <> 0 AND 10 / n > 1) AS either FROM records ORDER BY id

SELECT id, m <> 0 AND (n = 0 OR m / n > 0) AND n / m >= 0 AS mixed FROM records WHERE id < 50 ORDER BY id

SELECT id, note ~ '^[0-9]+$' AND length(note) < 9 AND note::int > 100 AS large FROM records ORDER BY id

SELECT id, x BETWEEN -1000 AND 1000 AND x::int = 2 AS two FROM records ORDER BY id

SELECT id FROM records WHERE x BETWEEN -1000 AND 1000 AND x::int = 2 ORDER BY id

SELECT count(*) FILTER (WHERE y <> 0 AND x / y > 2) AS c FROM records

SELECT station, count(*) FILTER (WHERE m <> 0 AND n / m > 1) AS c FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, avg(x / y) FILTER (WHERE y <> 0) AS ratio FROM records WHERE x < 1e9 GROUP BY station ORDER BY station NULLS LAST

SELECT sum(n / m) FILTER (WHERE m <> 0) AS total, count(n / m) FILTER (WHERE m <> 0) AS c FROM records WHERE id < 50

SELECT max(ln(x)) FILTER (WHERE x > 0) AS most, min(sqrt(y)) FILTER (WHERE y >= 0) AS least FROM records

SELECT sum(note::numeric) FILTER (WHERE note ~ '^[0-9]+$' AND length(note) < 9) AS total FROM records

SELECT id, sum(n / m) FILTER (WHERE m <> 0) OVER (ORDER BY id) AS running FROM records WHERE id < 50 ORDER BY id

SELECT a.id, b.id AS other FROM records a JOIN records b ON b.m <> 0 AND a.n / b.m = 100 ORDER BY a.id, b.id

SELECT a.id, b.id AS other FROM records a JOIN records b ON a.station = b.station AND b.y <> 0 AND a.x / b.y > 5 ORDER BY a.id, b.id

SELECT a.id, count(b.id) AS c FROM records a LEFT JOIN records b ON a.station = b.station AND a.m <> b.m AND (a.n - b.n) / (a.m - b.m) > 1 WHERE a.id < 50 AND b.id < 50 GROUP BY a.id ORDER BY a.id

SELECT station, min(m) <> 0 AND max(n) / min(m) > 1 AS large FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station FROM records GROUP BY station HAVING min(y) > 0 AND sum(n) / min(y) > 10 ORDER BY station

SELECT id, CASE WHEN m <> 0 AND n / m > 1 THEN 'large' ELSE 'small' END AS size FROM records ORDER BY id

SELECT m <> 0 AND n / m > 1 AS large, count(*) AS c FROM records GROUP BY m <> 0 AND n / m > 1 ORDER BY c DESC, large

SELECT id, coalesce(m <> 0 AND n / m > 1, false) AS large FROM records ORDER BY coalesce(m <> 0 AND n / m > 1, false), id

-- A condition that stands behind the one that it would protect.
SELECT id, n / m > 1 AND m <> 0 AS large FROM records

SELECT id FROM records WHERE note ~ '^[0-9]+$' AND note::numeric > 100 ORDER BY id

SELECT id FROM records WHERE note ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' AND note::date > DATE '2024-01-01' ORDER BY id

SELECT id FROM records WHERE m <> 0 AND n::numeric % m = 0 ORDER BY id

SELECT id, note ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' AND note::timestamp > TIMESTAMP '2024-01-01' AS late FROM records ORDER BY id

SELECT id, CASE WHEN m <> 0 THEN n / m > 1 ELSE false END AS large, CASE WHEN y <> 0 THEN x / y > 1 END AS ratio FROM records ORDER BY id
