-- Time zones: local days and hours, summer time, offsets, both directions.

SELECT id, at AT TIME ZONE 'Asia/Seoul' AS seoul FROM records WHERE at IS NOT NULL ORDER BY id

SELECT id, (at AT TIME ZONE 'Asia/Seoul')::timestamp AS local FROM records WHERE station = 'oslo' ORDER BY id

SELECT id, (at AT TIME ZONE 'Europe/Oslo')::date AS day FROM records WHERE station IN ('oslo', 'bergen') ORDER BY id

SELECT (at AT TIME ZONE 'America/New_York')::date AS day, count(*) AS n FROM records WHERE at IS NOT NULL GROUP BY 1 ORDER BY 1

SELECT date_trunc('day', at AT TIME ZONE 'America/Lima') AS day, count(*) AS n, sum(y) AS total FROM records WHERE station = 'lima' GROUP BY 1 ORDER BY 1

SELECT extract(hour FROM at AT TIME ZONE 'Europe/Copenhagen') AS hour, count(*) AS n FROM records WHERE at IS NOT NULL GROUP BY 1 ORDER BY 1

SELECT id, extract(epoch FROM (at AT TIME ZONE 'America/New_York') - (at AT TIME ZONE 'UTC')) / 3600 AS hours FROM records WHERE at IS NOT NULL ORDER BY id

SELECT id, (at AT TIME ZONE 'Europe/Oslo') - (at AT TIME ZONE 'UTC') AS ahead FROM records WHERE station IN ('bergen', 'køln', 'Ålesund') ORDER BY id

SELECT id, date_bin(INTERVAL '1 day', at AT TIME ZONE 'Asia/Kolkata', TIMESTAMP '2000-01-01') AS day FROM records WHERE station = 'lima' ORDER BY id

SELECT id, extract(epoch FROM at AT TIME ZONE 'Asia/Seoul') AS e FROM records WHERE station = 'bergen' ORDER BY id

-- In spring an hour is missing, in autumn one comes twice.
SELECT id, at AT TIME ZONE 'America/New_York' AS local FROM records WHERE id BETWEEN 8 AND 19 ORDER BY id

SELECT id, at AT TIME ZONE 'Europe/Berlin' AS local FROM records WHERE id IN (11, 12, 15, 16, 33, 34, 57, 58) ORDER BY id

SELECT TIMESTAMP '2024-03-10 02:30:00' AT TIME ZONE 'America/New_York' AS skipped

SELECT TIMESTAMP '2024-11-03 01:30:00' AT TIME ZONE 'America/New_York' AS doubled

SELECT TIMESTAMP '2024-03-31 02:30:00' AT TIME ZONE 'Europe/Berlin' AS skipped, TIMESTAMP '2024-10-27 02:30:00' AT TIME ZONE 'Europe/Berlin' AS doubled

SELECT TIMESTAMP '2024-10-06 02:15:00' AT TIME ZONE 'Australia/Lord_Howe' AS skipped, TIMESTAMP '2024-04-07 01:45:00' AT TIME ZONE 'Australia/Lord_Howe' AS doubled

SELECT id, (at AT TIME ZONE 'UTC') AT TIME ZONE 'America/Lima' AS as_if_lima FROM records WHERE station = 'lima' ORDER BY id

SELECT id, (at AT TIME ZONE 'America/New_York') AT TIME ZONE 'America/New_York' = at AS same FROM records WHERE at IS NOT NULL ORDER BY id

SELECT id FROM records WHERE at AT TIME ZONE 'Europe/Berlin' >= TIMESTAMP '2025-01-01 00:00:00' AND at AT TIME ZONE 'Europe/Berlin' < TIMESTAMP '2025-01-01 02:00:00' ORDER BY id

SELECT id FROM records WHERE at >= TIMESTAMP '2025-01-01 00:00:00' AT TIME ZONE 'Europe/Berlin' AND at < TIMESTAMP '2025-01-02 00:00:00' AT TIME ZONE 'Europe/Berlin' ORDER BY id

SELECT id FROM records WHERE (at AT TIME ZONE 'America/New_York')::date = DATE '2024-12-31' ORDER BY id

SELECT id FROM records WHERE extract(dow FROM at AT TIME ZONE 'Asia/Tokyo') IN (0, 6) ORDER BY id

SELECT id, at AT TIME ZONE 'UTC' AS utc, at::timestamp AS plain FROM records WHERE station = 'quito' ORDER BY id

SELECT id, at::timestamp::timestamptz = at AS same FROM records WHERE at IS NOT NULL ORDER BY id

SELECT date_trunc('day', at, 'America/New_York') AS day, count(*) AS n FROM records WHERE at >= '2024-03-01' AND at < '2024-12-01' GROUP BY 1 ORDER BY 1

SELECT id, date_trunc('hour', at, 'Asia/Kolkata') AS hour FROM records WHERE station = '' ORDER BY id

SELECT id, date_trunc('week', at, 'Europe/Berlin') AS week, date_trunc('month', at, 'Europe/Berlin') AS month FROM records WHERE station IN ('oslo', 'køln') ORDER BY id

SELECT id, date_trunc('day', at AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'Europe/Berlin' AS midnight FROM records WHERE id BETWEEN 11 AND 20 ORDER BY id

SELECT id, at AT TIME ZONE '+02' AS posix, at AT TIME ZONE '-05:30' AS half FROM records WHERE station = '' ORDER BY id

SELECT id, at AT TIME ZONE INTERVAL '5 hours 30 minutes' AS india, at AT TIME ZONE INTERVAL '-3 hours' AS brazil FROM records WHERE station = '' ORDER BY id

SELECT id, at AT TIME ZONE 'EST' AS est, at AT TIME ZONE 'PDT' AS pdt, at AT TIME ZONE 'CET' AS cet, at AT TIME ZONE 'Z' AS zulu FROM records WHERE station = 'lima' ORDER BY id

SELECT id, at AT TIME ZONE 'utc' AS u, at AT TIME ZONE 'gmt' AS g, at AT TIME ZONE 'europe/paris' AS p FROM records WHERE station = '' ORDER BY id

SELECT id, at AT TIME ZONE 'EST5EDT' AS e, at AT TIME ZONE 'US/Pacific' AS p, at AT TIME ZONE 'Etc/GMT+3' AS g FROM records WHERE station = 'køln' ORDER BY id

SELECT id, at AT TIME ZONE CASE WHEN n > 4 THEN 'Asia/Tokyo' ELSE 'America/Bogota' END AS local FROM records WHERE station = 'lima' ORDER BY id

SELECT z.zone, count(*) AS n FROM records CROSS JOIN (VALUES ('Asia/Tokyo'), ('America/Los_Angeles'), ('UTC')) AS z(zone) WHERE extract(hour FROM at AT TIME ZONE z.zone) BETWEEN 8 AND 17 GROUP BY z.zone ORDER BY z.zone

SELECT timezone('Europe/Oslo', at) AS local FROM records WHERE id IN (8, 9, 32) ORDER BY id

SELECT timezone('Europe/Oslo', TIMESTAMP '2025-07-01 12:00') AS moment

SELECT '2025-07-01 12:00:00+02'::timestamptz AS moment, '2025-07-01 12:00:00 Europe/Berlin'::timestamptz AS named, '2025-07-01T12:00:00Z'::timestamp AS plain

SELECT TIMESTAMP '2025-07-01 12:00:00+02' AS offset_is_ignored, TIMESTAMPTZ '2025-07-01 12:00:00-08' AS moment

SELECT TIMESTAMP WITH TIME ZONE '2025-01-01 00:00 America/New_York' AS moment, '2025-07-01 00:00 EST'::timestamptz AS est

SELECT id FROM records WHERE at = '2025-01-05 12:15:30+02' ORDER BY id

SELECT id FROM records WHERE at < '1970-01-01' ORDER BY id

SELECT id, at::date AS day, at::time AS clock FROM records WHERE station = 'quito' ORDER BY id

SELECT id, (at AT TIME ZONE 'Asia/Kathmandu')::time AS clock FROM records WHERE station = 'big' ORDER BY id

SELECT id, to_char(at AT TIME ZONE 'America/New_York', '%Y') = extract(year FROM at AT TIME ZONE 'America/New_York')::text AS same FROM records WHERE false

SELECT min(at AT TIME ZONE 'Asia/Seoul') AS first, max(at AT TIME ZONE 'Asia/Seoul') AS last FROM records

SELECT count(DISTINCT (at AT TIME ZONE 'Europe/Berlin')::date) AS days FROM records

SELECT id, at AT TIME ZONE 'America/Los_Angeles' + INTERVAL '1 day' AS later FROM records WHERE id IN (8, 9, 17) ORDER BY id

SELECT id, (at AT TIME ZONE 'America/New_York' + INTERVAL '1 day') AT TIME ZONE 'America/New_York' - at AS day_length FROM records WHERE id IN (8, 9, 17, 32, 59) ORDER BY id

SELECT id, extract(timezone FROM at) AS zone FROM records WHERE station = '' ORDER BY id

SELECT id, at AT TIME ZONE 'Pacific/Apia' AS apia, at AT TIME ZONE 'America/Caracas' AS caracas FROM records WHERE station = 'quito' AND at IS NOT NULL ORDER BY id

-- Parts with all their digits: extract() gives a numeric, date_part() a double.

SELECT id, round(extract(epoch FROM until - at) / 60, 2) AS minutes FROM records ORDER BY id

SELECT id, round(extract(second FROM at) * 10 / 4) AS r, (extract(second FROM at) * 1000)::int AS ms FROM records ORDER BY id

SELECT round(extract(epoch FROM INTERVAL '2.5 seconds')) AS up, round(date_part('epoch', INTERVAL '2.5 seconds')) AS even, extract(epoch FROM INTERVAL '0.5 seconds')::int AS zero

SELECT id, (extract(hour FROM at) / 4)::int AS whole, (date_part('hour', at) / 4)::int AS of_double, round(extract(hour FROM at) / 8, 1) AS r FROM records ORDER BY id

SELECT id, extract(epoch FROM at) % 60 AS rest, mod(extract(epoch FROM at), 3600) AS h FROM records ORDER BY id

SELECT sum(extract(epoch FROM until - at)) AS total, avg(extract(epoch FROM until - at)) AS mean, max(extract(second FROM at)) AS most FROM records

SELECT id FROM records WHERE extract(second FROM at) = 59.999999 ORDER BY id

SELECT extract(second FROM at) AS s, count(*) AS c FROM records GROUP BY extract(second FROM at) ORDER BY c DESC, s NULLS LAST

SELECT id, extract(epoch FROM at)::bigint / 86400 AS day, floor(extract(epoch FROM at) / 86400) AS d, trunc(extract(epoch FROM at) / 3600.0, 3) AS h FROM records ORDER BY id

SELECT id, to_timestamp(extract(epoch FROM at)) = at AS same, extract(epoch FROM at) > 1700000000 AS late, coalesce(extract(epoch FROM at), 0) AS s FROM records WHERE id NOT IN (22, 18, 41) ORDER BY id

SELECT id, extract(milliseconds FROM at) AS ms, extract(microseconds FROM at) AS us, extract(julian FROM at::date) AS j FROM records ORDER BY id

SELECT (h + 1) / 2 AS half, h / 2.0 AS exact, h / 5 AS fifth FROM (SELECT DISTINCT extract(hour FROM at) AS h FROM records) AS hours ORDER BY 1, 2, 3

SELECT id, at::date + 7 AS later, at::date - extract(day FROM at)::int AS before, at::date + n::int AS shifted FROM records ORDER BY id

SELECT day::date + k AS next FROM (SELECT DISTINCT date_trunc('year', at) AS day FROM records) AS years, (SELECT 1 AS k UNION ALL SELECT 2) AS numbers ORDER BY 1

SELECT at::date + n AS later FROM records

SELECT at::date + row_number() OVER (ORDER BY id) AS later FROM records

SELECT at::date + count(*) AS later FROM records GROUP BY at::date

SELECT at::date + extract(day FROM at) AS later FROM records

SELECT extract(hour FROM at::date) AS h FROM records

SELECT extract(second FROM at::date) AS s FROM records

SELECT date_part('hour', at::date) AS h, extract(epoch FROM at::date) AS e, extract(dow FROM at::date) AS d FROM records ORDER BY 2, 1

SELECT DISTINCT (extract(hour FROM at) + 1) / 2 AS a, max(extract(hour FROM at)) OVER () / 4 AS b, extract(hour FROM at)::int / 5 AS c, (date_part('hour', at) - 1) / 2 AS d FROM records ORDER BY 1, 2, 3, 4

SELECT hour / 5 AS fifth, day / 2 AS half FROM (SELECT DISTINCT extract(hour FROM at)::int AS hour, extract(day FROM at) + 1 AS day FROM records) AS parts ORDER BY 1, 2

SELECT min(extract(hour FROM at)) / 2 AS a, max(extract(minute FROM at)) / 7 AS b FROM records

SELECT - INTERVAL '1 day' AS a, - INTERVAL '1 month 2 days 03:04:05' AS b, TIMESTAMP '2024-03-10 12:00' + - INTERVAL '36 hours' AS c, - (- INTERVAL '1 year') AS d
