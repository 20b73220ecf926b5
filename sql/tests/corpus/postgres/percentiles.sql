-- Percentiles, medians and spreads.

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y) AS median FROM records

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS median FROM records

SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY n) AS q1, percentile_cont(0.75) WITHIN GROUP (ORDER BY n) AS q3 FROM records

SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY y) AS p90, percentile_cont(0.95) WITHIN GROUP (ORDER BY y) AS p95, percentile_cont(0.99) WITHIN GROUP (ORDER BY y) AS p99 FROM records

SELECT station, percentile_cont(0.5) WITHIN GROUP (ORDER BY y) AS median FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, percentile_cont(0.9) WITHIN GROUP (ORDER BY n) AS p90 FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT percentile_cont(0.1) WITHIN GROUP (ORDER BY x) FROM records WHERE x < 1000

SELECT percentile_cont(0.333) WITHIN GROUP (ORDER BY x) FROM records WHERE x < 1000

SELECT percentile_cont(0) WITHIN GROUP (ORDER BY y) AS least, percentile_cont(1) WITHIN GROUP (ORDER BY y) AS most FROM records

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y DESC) AS median FROM records

SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY y DESC) AS low FROM records

SELECT percentile_cont(0.123456789) WITHIN GROUP (ORDER BY y) FROM records

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y) FILTER (WHERE ok) AS median_ok FROM records

SELECT station, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FILTER (WHERE ok) AS median_ok FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y) FROM records WHERE false

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y) FROM records WHERE id = 1

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y) FROM records WHERE id IN (1, 2)

SELECT percentile_cont(0.7) WITHIN GROUP (ORDER BY m) FROM records WHERE id IN (50, 51, 52, 53)

SELECT percentile_cont(0.7) WITHIN GROUP (ORDER BY x) FROM records WHERE id IN (9, 50, 51, 52)

SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY y) AS quartiles FROM records

SELECT station, percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY n) AS bounds FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS median FROM records

SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY y) AS p90 FROM records

SELECT station, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS median FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY at) AS middle FROM records

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY station) AS middle FROM records

SELECT percentile_disc(0) WITHIN GROUP (ORDER BY n) AS least, percentile_disc(1) WITHIN GROUP (ORDER BY n) AS most FROM records

SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY y DESC) AS high FROM records

SELECT mode() WITHIN GROUP (ORDER BY station) AS most_often FROM records WHERE station IS NOT NULL

SELECT percentile_cont(0.75) WITHIN GROUP (ORDER BY y) - percentile_cont(0.25) WITHIN GROUP (ORDER BY y) AS spread FROM records

SELECT round(percentile_cont(0.9) WITHIN GROUP (ORDER BY y)::numeric, 2) AS p90 FROM records

SELECT station, max(y) - percentile_cont(0.5) WITHIN GROUP (ORDER BY y) AS above FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT count(*) FROM records WHERE y > (SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY y) FROM records)

SELECT id, y FROM records WHERE y >= (SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY y) FROM records) ORDER BY y DESC, id

WITH bounds AS (SELECT station, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS median FROM records GROUP BY station) SELECT r.id FROM records r JOIN bounds b ON b.station = r.station WHERE r.n > b.median ORDER BY r.id

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM until - at)) AS seconds FROM records

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY length(note)) AS length FROM records

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n * 1.5) AS scaled FROM records

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(y)) FROM records

SELECT avg(n) AS mean, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS median, avg(n) > percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS skewed FROM records

SELECT station, count(n), min(n), percentile_cont(0.5) WITHIN GROUP (ORDER BY n), max(n), avg(n), stddev(n) FROM records GROUP BY station HAVING count(n) > 3 ORDER BY station NULLS LAST

SELECT station, stddev_samp(n) AS s, stddev_pop(n) AS p, var_samp(n) AS v, var_pop(n) AS q FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT corr(n, y) AS r, regr_slope(y, n) AS slope, regr_intercept(y, n) AS start, regr_r2(y, n) AS fit, covar_pop(y, n) AS c FROM records WHERE id BETWEEN 27 AND 42

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY until - at) AS median_length FROM records WHERE until IS NOT NULL AND at IS NOT NULL

SELECT id, n, ntile(4) OVER (ORDER BY n, id) AS quartile FROM records WHERE n IS NOT NULL ORDER BY id

SELECT quartile, min(n), max(n), count(*) FROM (SELECT n, ntile(4) OVER (ORDER BY n, id) AS quartile FROM records WHERE n IS NOT NULL) t GROUP BY quartile ORDER BY quartile

SELECT id, round((percent_rank() OVER (ORDER BY n))::numeric, 4) AS rank FROM records WHERE station = 'lima' ORDER BY id

SELECT id, cume_dist() OVER (ORDER BY y) AS below FROM records WHERE station = 'lima' ORDER BY id

SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY y) FROM records

-- Spread and correlation over frames that move: a value that left the frame leaves nothing behind.

SELECT id, stddev(x) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM records ORDER BY id

SELECT id, var_pop(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS v, var_samp(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS w FROM records ORDER BY id

SELECT id, stddev_pop(x) OVER (PARTITION BY station ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s, variance(y) OVER (PARTITION BY station ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM records ORDER BY id

SELECT id, covar_pop(y, x) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS c, covar_samp(y, x) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS d FROM records ORDER BY id

SELECT id, corr(y, x) OVER (ORDER BY id ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS c FROM records WHERE id BETWEEN 1 AND 42 ORDER BY id

SELECT id, regr_slope(y, x) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS s, round(regr_intercept(y, x) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)::numeric, 9) AS i FROM records WHERE id BETWEEN 1 AND 42 ORDER BY id

SELECT id, regr_r2(y, x) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS r, regr_count(y, x) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS c FROM records WHERE id BETWEEN 11 AND 42 ORDER BY id

SELECT id, regr_avgx(y, x) OVER (ORDER BY id ROWS 2 PRECEDING) AS a, regr_avgy(y, x) OVER (ORDER BY id ROWS 2 PRECEDING) AS b, regr_sxx(y, x) OVER (ORDER BY id ROWS 2 PRECEDING) AS c, regr_sxy(y, x) OVER (ORDER BY id ROWS 2 PRECEDING) AS d, regr_syy(y, x) OVER (ORDER BY id ROWS 2 PRECEDING) AS e FROM records WHERE abs(x) < 1e9 ORDER BY id

SELECT id, stddev(n) OVER (ORDER BY at RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW) AS s FROM records WHERE at IS NOT NULL ORDER BY id

SELECT id, stddev(x) FILTER (WHERE ok) OVER (ORDER BY id ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING) AS s FROM records ORDER BY id

-- Values that are far from zero and near to each other.
SELECT station, corr(extract(epoch FROM at)::float8, x) AS c, regr_slope(x, extract(epoch FROM at)::float8) AS s FROM records WHERE id BETWEEN 12 AND 42 GROUP BY station ORDER BY station NULLS LAST

SELECT station, stddev(1000000000 + n) AS s, var_pop(1000000000 + id) AS v FROM records GROUP BY station ORDER BY station NULLS LAST

SELECT station, regr_r2(1.0::float8, x) AS flat, regr_r2(x, 1.0::float8) AS steep, corr(x, 1.0::float8) AS c FROM records WHERE x < 1e6 GROUP BY station ORDER BY station NULLS LAST

SELECT station, regr_count(y, x) AS c, regr_avgx(y, x) AS ax, regr_avgy(y, x) AS ay, regr_sxx(y, x) AS sxx, regr_sxy(y, x) AS sxy, regr_syy(y, x) AS syy, regr_slope(y, x) AS s, regr_intercept(y, x) AS i, covar_pop(y, x) AS cp, covar_samp(y, x) AS cs FROM records WHERE x < 1e6 GROUP BY station ORDER BY station NULLS LAST

SELECT regr_slope(y, x) AS s, corr(y, x) AS c, covar_samp(y, x) AS v FROM records WHERE id = 1
