-- Gaps in time: what is missing, what came late, what belongs together.

-- Pauses of more than a day, of each station.
SELECT station, id, gap FROM (SELECT station, id, at - lag(at) OVER (PARTITION BY station ORDER BY at, id) AS gap FROM records WHERE at IS NOT NULL) t WHERE gap > INTERVAL '1 day' ORDER BY station, id

SELECT b.id FROM records a JOIN records b ON b.id = a.id + 1 WHERE b.at - a.at > INTERVAL '1 day' ORDER BY b.id

SELECT b.id FROM records a JOIN records b ON b.id = a.id + 1 WHERE b.at - a.at BETWEEN INTERVAL '1 hour' AND INTERVAL '2 days' ORDER BY b.id

SELECT id, lead(at) OVER (PARTITION BY station ORDER BY at, id) - at AS until_next FROM records WHERE station = 'lima' ORDER BY id

SELECT id, extract(epoch FROM lead(at) OVER (ORDER BY at, id) - at) AS seconds FROM records WHERE station = 'oslo' ORDER BY id

SELECT id, round(extract(epoch FROM at - lag(at) OVER (ORDER BY at, id)) / 3600, 2) AS hours FROM records WHERE station = 'Oslo' ORDER BY id

SELECT id, extract(day FROM at - lag(at) OVER (ORDER BY at, id)) AS days, extract(hour FROM at - lag(at) OVER (ORDER BY at, id)) AS hours FROM records WHERE station = 'bergen' ORDER BY id

SELECT station, max(gap) AS longest, min(gap) AS shortest FROM (SELECT station, at - lag(at) OVER (PARTITION BY station ORDER BY at) AS gap FROM records) t GROUP BY station ORDER BY station

SELECT station, avg(gap) AS usual FROM (SELECT station, at - lag(at) OVER (PARTITION BY station ORDER BY at) AS gap FROM records WHERE at >= '2025-01-01') t WHERE gap IS NOT NULL GROUP BY station ORDER BY station

SELECT station, count(*) AS n, sum(until - at) AS covered FROM records WHERE until >= at GROUP BY station ORDER BY station

-- Sessions: a new one begins after half an hour of silence.
SELECT station, session, min(at) AS began, max(at) AS ended, count(*) AS n FROM (SELECT station, at, sum(fresh) OVER (PARTITION BY station ORDER BY at, id) AS session FROM (SELECT id, station, at, CASE WHEN at - lag(at) OVER (PARTITION BY station ORDER BY at, id) <= INTERVAL '30 minutes' THEN 0 ELSE 1 END AS fresh FROM records WHERE at IS NOT NULL) a) b GROUP BY station, session ORDER BY station, session

SELECT station, count(*) FILTER (WHERE gap > INTERVAL '30 days') AS months_missing FROM (SELECT station, at - lag(at) OVER (PARTITION BY station ORDER BY at, id) AS gap FROM records) t GROUP BY station ORDER BY station

SELECT id FROM (SELECT id, at - lag(at) OVER (ORDER BY at, id) AS gap FROM records WHERE at IS NOT NULL) t ORDER BY gap DESC NULLS LAST, id LIMIT 5

SELECT id, CASE WHEN until - at < INTERVAL '1 hour' THEN 'short' WHEN until - at < INTERVAL '1 day' THEN 'day' WHEN until - at < INTERVAL '1 month' THEN 'month' ELSE 'long' END AS kind FROM records WHERE until IS NOT NULL AND at IS NOT NULL ORDER BY id

SELECT id FROM records WHERE until - at = INTERVAL '30 days' ORDER BY id

SELECT id FROM records WHERE until - at = INTERVAL '1 month' ORDER BY id

SELECT id FROM records WHERE at + INTERVAL '1 month' = until ORDER BY id

SELECT id FROM records WHERE until > at + INTERVAL '1 day' ORDER BY id

SELECT date_bin(INTERVAL '15 minutes', at, TIMESTAMP '2000-01-01') AS slot, count(*) AS n FROM records WHERE at >= '2025-01-05' AND at < '2025-01-06' GROUP BY slot ORDER BY slot

SELECT date_bin(INTERVAL '6 hours', at, TIMESTAMPTZ '2025-04-01 00:00:00+00') AS slot, count(*) AS n, avg(y) AS mean FROM records WHERE at >= '2025-04-01' AND at < '2025-04-10' GROUP BY 1 ORDER BY 1

SELECT date_bin('1 day', at, '2001-01-01 06:00:00+00') AS slot, count(*) AS n FROM records WHERE at >= '2025-06-01' AND at < '2025-07-01' GROUP BY 1 ORDER BY 1

SELECT id, date_bin(INTERVAL '7 days', at, TIMESTAMP '2024-01-01') AS week FROM records WHERE at < '1971-01-01' ORDER BY id

SELECT date_trunc('day', at) AS day, count(*) AS n FROM records WHERE at >= '2025-03-01' GROUP BY day ORDER BY day

SELECT date_trunc('week', at)::date AS week, count(*) AS n, sum(n) AS total FROM records WHERE at >= '2025-01-01' AND at < '2026-01-01' AND station <> 'big' GROUP BY 1 ORDER BY 1

SELECT date_trunc('month', at) AS month, count(DISTINCT station) AS stations FROM records GROUP BY 1 ORDER BY 1 NULLS LAST

SELECT date_trunc('quarter', at) AS quarter, min(y) AS low, max(y) AS high FROM records WHERE at IS NOT NULL GROUP BY 1 ORDER BY 1

SELECT extract(year FROM at) AS year, extract(quarter FROM at) AS quarter, count(*) AS n FROM records WHERE at IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2

SELECT extract(isodow FROM at) AS weekday, count(*) AS n FROM records WHERE at IS NOT NULL GROUP BY 1 ORDER BY 1

SELECT extract(hour FROM at) AS hour, count(*) AS n FROM records WHERE at IS NOT NULL GROUP BY 1 ORDER BY 1

-- Days of a month on which nothing was measured before the next one came.
SELECT id, next_day - day - 1 AS missing_days FROM (SELECT id, at::date AS day, lead(at::date) OVER (ORDER BY at, id) AS next_day FROM records WHERE station = 'lima') t WHERE next_day - day > 1 ORDER BY id

SELECT id, (lead(date_trunc('hour', at)) OVER (ORDER BY at, id) - date_trunc('hour', at)) AS step FROM records WHERE station = '' ORDER BY id

SELECT id, count(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW) AS last_day FROM records WHERE at >= '2025-01-01' AND at < '2025-05-01' ORDER BY id

SELECT id, sum(n) OVER (PARTITION BY station ORDER BY at RANGE BETWEEN INTERVAL '36 hours' PRECEDING AND CURRENT ROW) AS moving FROM records WHERE station IN ('Oslo', 'big') ORDER BY id

SELECT id, avg(y) OVER (ORDER BY at RANGE BETWEEN INTERVAL '1 month' PRECEDING AND INTERVAL '1 month' FOLLOWING) AS smooth FROM records WHERE station = 'lima' ORDER BY id

SELECT id, count(*) OVER (ORDER BY at RANGE BETWEEN CURRENT ROW AND INTERVAL '45 minutes' FOLLOWING) AS soon FROM records WHERE at IS NOT NULL ORDER BY id

SELECT max(at) - min(at) AS span FROM records WHERE station = 'oslo'

SELECT station, extract(epoch FROM max(at) - min(at)) / 86400 AS days FROM records WHERE at >= '2024-01-01' GROUP BY station HAVING count(*) > 1 ORDER BY station

SELECT station, max(until) - max(at) AS tail FROM records GROUP BY station HAVING max(until) - max(at) >= INTERVAL '0' ORDER BY station

SELECT count(*) AS n, count(*) FILTER (WHERE until - at > '1 day') AS long_ones, count(*) FILTER (WHERE until - at <= '1 day') AS short_ones FROM records

SELECT id, rank() OVER (ORDER BY until - at DESC NULLS LAST) AS r FROM records WHERE station = 'Ålesund' ORDER BY id

SELECT until - at AS length, count(*) AS n FROM records WHERE at IS NOT NULL AND until IS NOT NULL GROUP BY until - at HAVING count(*) > 1 ORDER BY length

SELECT a.id, b.id AS other FROM records a JOIN records b ON a.id < b.id AND a.until > b.at AND b.until > a.at WHERE a.station = b.station ORDER BY a.id, b.id

SELECT id, greatest(until - at, INTERVAL '1 hour') AS charged FROM records WHERE station = 'lima' AND until IS NOT NULL ORDER BY id

SELECT id, coalesce(until - at, INTERVAL '0 seconds') AS lasted FROM records WHERE station = 'bergen' ORDER BY id

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM until - at)) AS median_seconds FROM records WHERE until IS NOT NULL AND at IS NOT NULL

SELECT id, until - at > lag(until - at) OVER (ORDER BY id) AS longer FROM records WHERE station = 'Oslo' ORDER BY id

SELECT to_timestamp(floor(extract(epoch FROM at) / 1800) * 1800) AS half_hour, count(*) AS n FROM records WHERE station = '' GROUP BY 1 ORDER BY 1

SELECT count(*) FROM records WHERE at > TIMESTAMP '2025-01-05 10:20' AND at < TIMESTAMP '2025-01-05 11:00:01'

SELECT day, count(*) AS n, sum(count(*)) OVER (ORDER BY day) AS so_far FROM (SELECT at::date AS day FROM records WHERE station = 'lima') t GROUP BY day ORDER BY day
