-- Shares of a total.

SELECT station, sum(n) AS total, sum(n) / sum(sum(n)) OVER () AS share FROM records WHERE id < 50 GROUP BY station ORDER BY station NULLS LAST

SELECT station, sum(n) * 100 / sum(sum(n)) OVER () AS percent FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, round(100.0 * sum(n) / sum(sum(n)) OVER (), 2) AS percent FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, count(*) * 100.0 / sum(count(*)) OVER () AS percent FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, round(count(*) * 100.0 / sum(count(*)) OVER (), 1) AS percent FROM records GROUP BY station ORDER BY percent DESC, station NULLS LAST

SELECT station, count(*)::float / (SELECT count(*) FROM records) AS share FROM records GROUP BY station

SELECT station, count(*) / (SELECT count(*) FROM records) AS whole_share FROM records GROUP BY station

SELECT ok, count(*) * 1.0 / (SELECT count(*) FROM records WHERE ok IS NOT NULL) AS share FROM records WHERE ok IS NOT NULL GROUP BY ok ORDER BY ok

SELECT avg(CASE WHEN ok THEN 1 ELSE 0 END) AS share_ok FROM records

SELECT station, avg(CASE WHEN ok THEN 1.0 ELSE 0 END) AS share_ok FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, round(avg(CASE WHEN ok THEN 100 ELSE 0 END), 1) AS percent_ok FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, count(*) FILTER (WHERE ok) * 100.0 / count(*) AS percent FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, count(*) FILTER (WHERE ok) / count(*) AS whole FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, sum(ok::int)::numeric / count(*) AS share FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT id, station, n, n / sum(n) OVER (PARTITION BY station) AS share FROM records WHERE station = 'lima' ORDER BY id

SELECT id, n * 1.0 / sum(n) OVER (PARTITION BY station) AS share FROM records WHERE station = 'oslo' ORDER BY id

SELECT id, round(100.0 * n / sum(n) OVER (PARTITION BY station), 2) AS percent FROM records WHERE station IN ('oslo', 'lima') ORDER BY id

SELECT id, y, y / sum(y) OVER () AS share FROM records WHERE station = 'Oslo' ORDER BY y DESC, id

SELECT id, sum(y) OVER (ORDER BY y DESC, id) / sum(y) OVER () AS running_share FROM records WHERE station = 'Oslo' ORDER BY running_share

SELECT id, sum(n) OVER (ORDER BY id) / sum(n) OVER () AS running_share FROM records WHERE station = 'Oslo' ORDER BY id

SELECT station, sum(n) - avg(sum(n)) OVER () AS above_mean FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, sum(n)::float8 / sum(sum(n)) OVER () AS share FROM records GROUP BY station ORDER BY station NULLS LAST

WITH per AS (SELECT station, sum(n) AS total FROM records GROUP BY station) SELECT station, total / (SELECT sum(total) FROM per) AS share FROM per ORDER BY station NULLS LAST

WITH per AS (SELECT station, count(*) AS c FROM records GROUP BY station) SELECT station, c / sum(c) OVER () AS share, c / 7 AS sevenths FROM per ORDER BY station NULLS LAST

SELECT station, sum(n) / count(*) AS mean, avg(n) AS average FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, sum(n) / nullif(sum(m), 0) AS ratio FROM records WHERE id < 50 GROUP BY station ORDER BY station NULLS LAST

SELECT station, max(n) / nullif(min(n), 0) AS spread FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, max(n)::numeric / nullif(min(n), 0) AS spread FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station FROM records GROUP BY station HAVING sum(n) / (SELECT sum(n) FROM records) > 0.05 ORDER BY station

SELECT station, sum(n) > 0.5 * (SELECT max(total) FROM (SELECT sum(n) AS total FROM records GROUP BY station) t) AS large FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT date_trunc('month', at) AS month, count(*) AS c, round(count(*) / sum(count(*)) OVER () * 100, 3) AS percent FROM records WHERE at >= '2025-01-01' GROUP BY 1 ORDER BY 1

SELECT CASE WHEN y < 0 THEN 'below' WHEN y < 5 THEN 'small' ELSE 'large' END AS band, count(*) / sum(count(*)) OVER () AS share FROM records WHERE y IS NOT NULL GROUP BY 1 ORDER BY 1

SELECT station, sum(sum(n)) OVER (ORDER BY station) / sum(sum(n)) OVER () AS running FROM records WHERE station IS NOT NULL GROUP BY station ORDER BY station

SELECT id, n, ratio_to_all FROM (SELECT id, n, n / sum(n) OVER () AS ratio_to_all FROM records WHERE station = 'Oslo') t WHERE ratio_to_all > 0.2 ORDER BY id

SELECT sum(CASE WHEN ok THEN n ELSE 0 END) / sum(n) AS weighted FROM records

SELECT sum(CASE WHEN ok THEN n END) * 1.0 / nullif(sum(CASE WHEN NOT ok THEN n END), 0) AS odds FROM records

SELECT sum(x * n) / sum(n) AS weighted_mean FROM records WHERE id BETWEEN 33 AND 42

SELECT a.station, sum(a.n) / (SELECT sum(b.n) FROM records b WHERE b.ok = true) AS share FROM records a GROUP BY a.station ORDER BY a.station NULLS LAST

SELECT station, ok, count(*) / sum(count(*)) OVER (PARTITION BY station) AS share FROM records WHERE station IS NOT NULL GROUP BY station, ok ORDER BY station, ok NULLS LAST

SELECT station, ok, sum(n), sum(n) / nullif(sum(sum(n)) OVER (PARTITION BY ok), 0) AS share FROM records GROUP BY ROLLUP (station, ok)

SELECT count(DISTINCT station) * 100 / count(*) AS percent, count(DISTINCT station) * 100.0 / count(*) AS exact FROM records

SELECT round(sum(n) / 3.0) AS third, floor(sum(n) / 7.0) AS low, ceil(sum(n) / 7.0) AS high FROM records

SELECT (SELECT count(*) FROM records WHERE ok) / (SELECT count(*) FROM records)::numeric AS share

SELECT station, round(sum(n) * 100.0 / (SELECT sum(n) FROM records), 1) || '%' AS percent FROM records WHERE station IN ('oslo', 'Oslo', 'lima') GROUP BY station ORDER BY station
