-- Columns of days: compared, counted, cut and put into words.

SELECT id, day FROM records ORDER BY id

SELECT id FROM records WHERE day = DATE '2024-02-29' ORDER BY id

SELECT id FROM records WHERE day < DATE '2021-01-01' ORDER BY id

SELECT id FROM records WHERE day >= '2024-01-01' ORDER BY id

SELECT id FROM records WHERE day BETWEEN '2024-01-01' AND '2024-12-31' ORDER BY id

SELECT id FROM records WHERE day IN ('2024-02-29', '1970-01-01') ORDER BY id

SELECT id FROM records WHERE day IS NULL ORDER BY id

SELECT day, count(*) AS c FROM records GROUP BY day ORDER BY day NULLS FIRST

SELECT min(day) AS first, max(day) AS last, count(day) AS n, count(DISTINCT day) AS days FROM records

SELECT id, day + 1 AS next, day - 1 AS before FROM records WHERE day BETWEEN '0002-01-01' AND '9000-01-01' ORDER BY id

SELECT id, day - DATE '1970-01-01' AS days FROM records ORDER BY id

SELECT id, day::text AS t FROM records ORDER BY id

SELECT id, 'on ' || day AS label FROM records ORDER BY id

SELECT id, day::timestamp AS at FROM records ORDER BY id

SELECT id, day::timestamptz AS at FROM records ORDER BY id

SELECT id, at::date AS d, at::date = day AS same FROM records ORDER BY id

SELECT id, extract(year FROM day) AS y, extract(month FROM day) AS m, extract(day FROM day) AS d FROM records ORDER BY id

SELECT id, extract(dow FROM day) AS w, extract(doy FROM day) AS n, extract(quarter FROM day) AS q FROM records ORDER BY id

SELECT id, extract(isoyear FROM day) AS y, extract(week FROM day) AS w FROM records WHERE day > '1900-01-01' ORDER BY id

SELECT id, date_part('year', day) AS y FROM records ORDER BY id

SELECT id, date_trunc('month', day) AS m FROM records WHERE day > '1900-01-01' ORDER BY id

SELECT date_trunc('year', day) AS y, count(*) AS c FROM records WHERE day > '1900-01-01' GROUP BY 1 ORDER BY 1

SELECT id, coalesce(day, DATE '2000-01-01') AS d FROM records ORDER BY id

SELECT id, CASE WHEN day < '2000-01-01' THEN 'old' WHEN day IS NULL THEN 'none' ELSE 'new' END AS age FROM records ORDER BY id

SELECT id, greatest(day, DATE '2024-01-01') AS g, least(day, DATE '2024-01-01') AS l FROM records ORDER BY id

SELECT id, nullif(day, DATE '2024-02-29') AS d FROM records ORDER BY id

SELECT id, lag(day) OVER (ORDER BY id) AS before FROM records ORDER BY id

SELECT id, rank() OVER (ORDER BY day, id) AS r FROM records ORDER BY id

SELECT r.id, o.id AS other FROM records r JOIN records o ON r.day = o.day AND r.id < o.id ORDER BY 1, 2

SELECT DISTINCT day FROM records ORDER BY day

SELECT day FROM records WHERE id < 10 UNION SELECT DATE '2024-05-05' ORDER BY 1

SELECT id FROM records WHERE day = at::date ORDER BY id

SELECT id FROM records WHERE day < at ORDER BY id

SELECT array_agg(day ORDER BY id) AS days FROM records WHERE id < 12

SELECT string_agg(day::text, ' ' ORDER BY id) AS days FROM records

SELECT id, day IS DISTINCT FROM DATE '1970-01-01' AS other FROM records ORDER BY id

SELECT id, CAST('2024-02-29' AS DATE) AS d FROM records ORDER BY id LIMIT 1

SELECT CAST('2023-02-29' AS DATE) AS d

SELECT id FROM records WHERE day = '2023-02-29'

SELECT id, day + INTERVAL '1 day' AS next FROM records WHERE day BETWEEN '0002-01-01' AND '9000-01-01' ORDER BY id

SELECT id, day + INTERVAL '90 minutes' AS later FROM records WHERE day BETWEEN '0002-01-01' AND '9000-01-01' ORDER BY id

SELECT id, day - INTERVAL '1 month' AS before FROM records WHERE day BETWEEN '0002-01-01' AND '9000-01-01' ORDER BY id

SELECT id, at - day AS since FROM records WHERE day > '1900-01-01' ORDER BY id

SELECT count(*) AS c FROM records WHERE day > (SELECT min(day) FROM records)

SELECT max(day) - min(day) AS span FROM records

SELECT mode() WITHIN GROUP (ORDER BY day) AS usual FROM records WHERE day > '2024-02-01'
