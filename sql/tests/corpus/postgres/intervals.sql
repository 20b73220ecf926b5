-- Intervals: comparison, order, sums, parts, arithmetic, text.

SELECT INTERVAL '24 hours' = INTERVAL '1 day' AS same, INTERVAL '25 hours' > INTERVAL '1 day' AS more, INTERVAL '30 days' = INTERVAL '1 month' AS month

SELECT INTERVAL '1 year' = INTERVAL '12 months' AS y, INTERVAL '1 year' > INTERVAL '365 days' AS longer, INTERVAL '1 week' = INTERVAL '7 days' AS w, INTERVAL '1 month' < INTERVAL '31 days' AS m

SELECT INTERVAL '36 hours' BETWEEN INTERVAL '1 day' AND INTERVAL '2 days' AS inside, INTERVAL '36 hours' NOT BETWEEN INTERVAL '1 day' AND INTERVAL '2 days' AS outside

SELECT INTERVAL '48 hours' IN (INTERVAL '1 day', INTERVAL '2 days') AS listed, INTERVAL '1 hour' IN (INTERVAL '1 day', INTERVAL '60 minutes') AS other

SELECT INTERVAL '1 day' IS DISTINCT FROM INTERVAL '24 hours' AS differs, INTERVAL '1 day' <> INTERVAL '23 hours' AS unequal

SELECT greatest(INTERVAL '25 hours', INTERVAL '1 day') AS g, least(INTERVAL '29 days', INTERVAL '1 month') AS l

SELECT nullif(INTERVAL '24 hours', INTERVAL '1 day') IS NULL AS gone

SELECT min(d) AS low, max(d) AS high FROM (VALUES (INTERVAL '25 hours'), (INTERVAL '1 day'), (INTERVAL '2 days'), (INTERVAL '30 hours')) AS t(d)

SELECT d FROM (VALUES (INTERVAL '25 hours'), (INTERVAL '1 day'), (INTERVAL '1 month'), (INTERVAL '31 days'), (INTERVAL '10 minutes')) AS t(d) ORDER BY d

SELECT d FROM (VALUES (INTERVAL '25 hours'), (INTERVAL '1 day'), (INTERVAL '1 month'), (INTERVAL '31 days'), (NULL)) AS t(d) ORDER BY d DESC

SELECT count(DISTINCT d) AS kinds, count(*) AS n FROM (VALUES (INTERVAL '24 hours'), (INTERVAL '1 day'), (INTERVAL '2 days'), (INTERVAL '30 days'), (INTERVAL '1 month')) AS t(d)

SELECT count(*) AS n FROM (SELECT DISTINCT d FROM (VALUES (INTERVAL '24 hours'), (INTERVAL '1 day'), (INTERVAL '2 days')) AS t(d)) u

SELECT count(*) AS n FROM (VALUES (INTERVAL '24 hours'), (INTERVAL '1 day'), (INTERVAL '2 days')) AS t(d) GROUP BY d ORDER BY n

SELECT rank() OVER (ORDER BY d) AS r, count(*) OVER (PARTITION BY d) AS equals FROM (VALUES (INTERVAL '24 hours'), (INTERVAL '1 day'), (INTERVAL '2 days'), (INTERVAL '23 hours')) AS t(d) ORDER BY r

SELECT a.k, b.k AS other FROM (VALUES (1, INTERVAL '24 hours'), (2, INTERVAL '2 days')) AS a(k, d) JOIN (VALUES (3, INTERVAL '1 day'), (4, INTERVAL '48 hours')) AS b(k, d) ON a.d = b.d ORDER BY a.k

SELECT id, until - at AS lasted FROM records WHERE until IS NOT NULL AND at IS NOT NULL ORDER BY until - at DESC, id LIMIT 10

SELECT min(until - at) AS low, max(until - at) AS high, avg(until - at) AS mean, sum(until - at) AS total FROM records

SELECT station, avg(until - at) AS mean FROM records WHERE until IS NOT NULL AND at IS NOT NULL GROUP BY station ORDER BY avg(until - at), station

SELECT station, sum(until - at) AS total FROM records GROUP BY station HAVING sum(until - at) > INTERVAL '1 month' ORDER BY total DESC

SELECT id FROM records WHERE until - at >= INTERVAL '1 day 1 hour' ORDER BY id

SELECT id FROM records WHERE until - at IN (INTERVAL '1 day', INTERVAL '30 days', INTERVAL '1 hour') ORDER BY id

SELECT id FROM records WHERE until - at < INTERVAL '1 week' AND until - at > INTERVAL '12 hours' ORDER BY id

SELECT id, extract(day FROM until - at) AS days, extract(hour FROM until - at) AS hours, extract(minute FROM until - at) AS minutes, extract(second FROM until - at) AS seconds FROM records WHERE until IS NOT NULL AND at IS NOT NULL ORDER BY id

SELECT id, extract(epoch FROM until - at) AS seconds, extract(milliseconds FROM until - at) AS ms, extract(microseconds FROM until - at) AS us FROM records WHERE station IN ('oslo', 'lima') ORDER BY id

SELECT extract(year FROM INTERVAL '14 months') AS y, extract(month FROM INTERVAL '14 months') AS m, extract(day FROM INTERVAL '40 days') AS d, extract(hour FROM INTERVAL '100 hours') AS h, extract(epoch FROM INTERVAL '1 month') AS e, extract(epoch FROM INTERVAL '1 year') AS ey

SELECT extract(second FROM INTERVAL '1 minute 2.5 seconds') AS s, extract(milliseconds FROM INTERVAL '2.5 seconds') AS ms, extract(quarter FROM INTERVAL '7 months') AS q, extract(decade FROM INTERVAL '25 years') AS decade, extract(century FROM INTERVAL '250 years') AS century

SELECT date_part('day', until - at) AS d, date_part('epoch', until - at) AS e FROM records WHERE id = 4

SELECT id, (until - at) * 2 AS twice, (until - at) / 2 AS half, -(until - at) AS back FROM records WHERE station = 'Oslo' ORDER BY id

SELECT INTERVAL '1 day' * 1.5 AS a, INTERVAL '1 month' / 2 AS b, 3 * INTERVAL '20 minutes' AS c, INTERVAL '1 month 15 days' * 0.5 AS d

SELECT n, n * INTERVAL '1 hour' AS hours FROM records WHERE station = 'oslo' ORDER BY id

SELECT INTERVAL '1 day' + INTERVAL '2 hours' AS a, INTERVAL '1 month' - INTERVAL '1 day' AS b, INTERVAL '1 hour' - INTERVAL '90 minutes' AS c

SELECT id, (until - at) + INTERVAL '1 day' AS longer, (until - at) - INTERVAL '1 hour' AS shorter FROM records WHERE station = 'big' ORDER BY id

SELECT id, at + (until - at) = until AS same FROM records WHERE until IS NOT NULL AND at IS NOT NULL ORDER BY id

SELECT id, at + n * INTERVAL '1 day' AS due FROM records WHERE station = 'lima' ORDER BY id

SELECT id, at + INTERVAL '1 month' AS next_month, at - INTERVAL '1 year' AS year_before FROM records WHERE station = 'oslo' ORDER BY id

SELECT DATE '2024-03-01' - DATE '2024-02-01' AS days, DATE '2024-02-28' + 2 AS later, DATE '2024-03-01' - 1 AS before, 7 + DATE '2024-12-31' AS week

SELECT DATE '2024-01-31' + INTERVAL '1 month' AS m, DATE '2024-02-29' - INTERVAL '1 year' AS y, DATE '2024-01-01' + INTERVAL '36 hours' AS h

SELECT id, until::date - at::date AS days FROM records WHERE until IS NOT NULL AND at IS NOT NULL ORDER BY id

SELECT id, at::date + n::int AS due FROM records WHERE station = 'lima' ORDER BY id

SELECT (until::date - at::date) / 7 AS weeks, count(*) AS n FROM records WHERE until IS NOT NULL AND at IS NOT NULL GROUP BY 1 ORDER BY 1

SELECT DATE '2024-03-01' - TIMESTAMP '2024-02-28 12:00:00' AS d, TIMESTAMP '2024-03-01 00:00:00' - DATE '2024-02-01' AS e

SELECT INTERVAL '1 day 02:03:04' AS a, INTERVAL '02:30' AS b, INTERVAL '1-2' AS c, INTERVAL 'P1Y2M3DT4H5M6S' AS d, INTERVAL '3 days ago' AS e, INTERVAL '90' MINUTE AS f

SELECT INTERVAL '1.5 days' AS a, INTERVAL '1 mon -1 days' AS b, INTERVAL '2 weeks 3 hrs' AS c, INTERVAL '-1 day +02:00' AS d, INTERVAL '1 century 2 decades' AS e, '1 day'::interval AS f, CAST('3 hours 10 secs' AS INTERVAL) AS g

SELECT (INTERVAL '1 day 02:03:04')::text AS a, (INTERVAL '14 months')::text AS b, (INTERVAL '-1 day -2 hours')::text AS c, (INTERVAL '0')::text AS d, (INTERVAL '1.25 seconds')::text AS e, (INTERVAL '1 day -1 hour')::text AS f

SELECT id, (until - at)::text AS words FROM records WHERE until IS NOT NULL AND at IS NOT NULL ORDER BY id

SELECT id, 'lasted ' || (until - at) AS words FROM records WHERE station = 'oslo' ORDER BY id

SELECT justify_hours(INTERVAL '50 hours') AS h, justify_days(INTERVAL '65 days') AS d, justify_interval(INTERVAL '1 month -1 hour') AS i

SELECT age(TIMESTAMP '2024-03-01', TIMESTAMP '2023-12-15 12:00') AS a, age(TIMESTAMP '2000-02-29', TIMESTAMP '2001-02-28') AS b

SELECT id, extract(year FROM age(until, at)) AS years, extract(month FROM age(until, at)) AS months, extract(day FROM age(until, at)) AS days FROM records WHERE station = 'oslo' AND until IS NOT NULL ORDER BY id

SELECT make_interval(days => 1) IS NULL AS named WHERE false

SELECT extract(second FROM at) AS s, extract(milliseconds FROM at) AS ms, extract(microseconds FROM at) AS us FROM records WHERE station IN ('oslo', 'lima', 'quito') ORDER BY id

SELECT id, extract(epoch FROM at) AS e, extract(epoch FROM at::date) AS day FROM records ORDER BY id

SELECT id, extract(century FROM at) AS c, extract(decade FROM at) AS d, extract(millennium FROM at) AS m, extract(isoyear FROM at) AS iy, extract(week FROM at) AS w, extract(doy FROM at) AS doy, extract(dow FROM at) AS dow, extract(julian FROM at::date) AS j FROM records WHERE at IS NOT NULL ORDER BY id

SELECT extract(hour FROM at) / 24 AS part_of_day FROM records WHERE station = 'Oslo' ORDER BY id

SELECT date_part('second', at) AS s, date_part('hour', at) AS h, date_part('dow', at) AS dow FROM records WHERE station = 'lima' ORDER BY id

SELECT array_agg(until - at ORDER BY until - at) AS ordered FROM records WHERE station = 'Ålesund'

SELECT id FROM records a WHERE until - at = (SELECT max(until - at) FROM records b WHERE b.station = a.station) ORDER BY id

SELECT id FROM records WHERE until - at IN (SELECT until - at FROM records WHERE station = 'Oslo') ORDER BY id

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY until - at) AS typical FROM records

SELECT first_value(until - at) OVER (ORDER BY until - at, id) AS least, id FROM records WHERE station = 'lima' AND until IS NOT NULL ORDER BY id

SELECT sum(until - at) OVER (ORDER BY id) AS so_far, max(until - at) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS longest FROM records WHERE station = 'Oslo' ORDER BY id

SELECT id FROM records WHERE at > TIMESTAMP '2025-03-02 01:30' AND until < TIMESTAMP '9999-12-31' ORDER BY id

SELECT TIMESTAMP '9999-12-31' AS last, DATE '9999-12-31' AS day, TIMESTAMP '0001-01-01 00:00:00' AS first, TIMESTAMP '2024-03-02 01:30' AS minutes

SELECT TIMESTAMP '2024-3-2 1:5:9' AS a, TIMESTAMP 'March 2, 2024 14:30' AS b, DATE '2 Jan 2024' AS c, DATE '20240102' AS d, DATE '1/2/2024' AS e, TIMESTAMP '2024-03-02 01:30:15.123456789' AS f, TIME '04:05' AS g, TIMESTAMP '2024-03-02 12:30 PM' AS h

SELECT coalesce(until, TIMESTAMP '9999-12-31') - at > INTERVAL '100 years' AS open, count(*) AS n FROM records WHERE at IS NOT NULL GROUP BY 1 ORDER BY 1

SELECT id, to_timestamp(n) AS t FROM records WHERE station = 'oslo' ORDER BY id

SELECT make_date(2024, 2, 29) AS d, make_date(2024, 2, 29) + 366 AS later, DATE '2024-02-29' + TIME '12:30' AS t

SELECT id, until - at AS lasted FROM records WHERE until - at IS NOT NULL AND NOT (until - at > INTERVAL '2 hours') ORDER BY id

SELECT until - at AS lasted, station FROM records WHERE station = 'lima' UNION SELECT INTERVAL '1 hour', 'lima' ORDER BY 1 NULLS LAST
