-- Columns of decimals: amounts of two digits after the point, and whole numbers of up to 28 digits.

SELECT id, amount, wide FROM records ORDER BY id

SELECT id FROM records WHERE amount = 19.99 ORDER BY id

SELECT id FROM records WHERE amount > 0.1 ORDER BY id

SELECT id FROM records WHERE amount = 0 ORDER BY id

SELECT id FROM records WHERE amount IN (0.1, 0.20, -19.99) ORDER BY id

SELECT id FROM records WHERE amount BETWEEN -20 AND 20.5 ORDER BY id

SELECT id FROM records WHERE wide > 9223372036854775807 ORDER BY id

SELECT id FROM records WHERE wide = 170141183460469231731 ORDER BY id

SELECT id FROM records WHERE amount > x ORDER BY id

SELECT id FROM records WHERE amount = n ORDER BY id

SELECT amount, count(*) AS c FROM records GROUP BY amount ORDER BY amount NULLS FIRST

SELECT sum(amount) AS total FROM records

SELECT sum(wide) AS total FROM records

SELECT station, sum(amount) AS total, count(amount) AS n FROM records GROUP BY station ORDER BY station

SELECT sum(amount) FILTER (WHERE amount > 0) AS gains, sum(amount) FILTER (WHERE amount < 0) AS losses FROM records

SELECT min(amount) AS low, max(amount) AS high, min(wide) AS least, max(wide) AS most FROM records

SELECT avg(amount) AS mean FROM records WHERE amount < 1000000

SELECT avg(wide) AS mean FROM records WHERE wide BETWEEN -1000 AND 1000000

SELECT id, amount + 1 AS more, amount - 0.05 AS less FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount + amount AS twice FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount * 2 AS twice FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount * 1.19 AS gross FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount * amount AS square FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount * n AS product FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount / 4 AS quarter FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount / 3 AS third FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount / nullif(n, 0) AS each FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, wide / 7 AS part FROM records WHERE wide BETWEEN -1000 AND 1000000 ORDER BY id

SELECT id, amount % 7 AS rest FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, -amount AS negative, abs(amount) AS size FROM records ORDER BY id

SELECT id, round(amount) AS whole, round(amount, 1) AS tenth FROM records ORDER BY id

SELECT id, floor(amount) AS f, ceil(amount) AS c, trunc(amount) AS t FROM records ORDER BY id

SELECT id, amount::bigint AS whole FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, amount::double precision AS d FROM records ORDER BY id

SELECT id, amount::text AS t, wide::text AS w FROM records ORDER BY id

SELECT id, 'costs ' || amount AS label FROM records ORDER BY id

SELECT id, concat(amount, ' / ', wide) AS label FROM records ORDER BY id

SELECT id, amount::numeric(30, 1) AS tenth FROM records ORDER BY id

SELECT id, '12.345'::numeric(28, 2) + amount AS more FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, n::numeric + amount AS more FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, x + amount AS more FROM records WHERE amount < 1000000 AND x BETWEEN -1000 AND 1000 ORDER BY id

SELECT id, coalesce(amount, 0) AS a FROM records ORDER BY id

SELECT id, CASE WHEN amount > 0 THEN amount ELSE 0 END AS gain FROM records ORDER BY id

SELECT id, greatest(amount, 0) AS g, least(amount, 0.5) AS l FROM records ORDER BY id

SELECT id, nullif(amount, 0) AS a FROM records ORDER BY id

SELECT id, sign(amount) AS s FROM records ORDER BY id

SELECT id, sum(amount) OVER (ORDER BY id) AS running FROM records ORDER BY id

SELECT id, sum(amount) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving FROM records ORDER BY id

SELECT id, avg(amount) OVER (PARTITION BY station) AS mean FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, rank() OVER (ORDER BY amount DESC, id) AS r FROM records WHERE amount IS NOT NULL ORDER BY id

SELECT r.id, o.id AS other FROM records r JOIN records o ON r.amount = o.amount AND r.id < o.id ORDER BY 1, 2

SELECT DISTINCT amount FROM records ORDER BY amount

SELECT amount FROM records WHERE id < 10 UNION SELECT 0.5 ORDER BY 1

SELECT amount FROM records WHERE id < 10 UNION ALL SELECT n FROM records WHERE id < 10 ORDER BY 1

SELECT array_agg(amount ORDER BY id) AS amounts FROM records WHERE id < 12

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS median FROM records WHERE amount < 1000000

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS median FROM records WHERE amount < 1000000

SELECT stddev(amount) AS s, variance(amount) AS v FROM records WHERE amount < 1000000

SELECT sum(amount * 2) AS total FROM records WHERE amount < 1000000

SELECT sum(amount * n) AS total FROM records WHERE amount < 1000000

SELECT sum(DISTINCT amount) AS total FROM records

SELECT count(*) AS c FROM records WHERE amount > (SELECT avg(amount) FROM records WHERE amount < 1000000)

SELECT id, amount IS DISTINCT FROM 0.10 AS other FROM records ORDER BY id

SELECT id, power(amount, 2) AS p, sqrt(abs(amount)) AS r FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, round(amount * 100) AS cents FROM records WHERE amount < 1000000 ORDER BY id

SELECT id, wide + 1 AS next FROM records ORDER BY id

SELECT id, wide * 10 AS tens FROM records ORDER BY id

SELECT id, wide::bigint AS whole FROM records WHERE wide BETWEEN -1000 AND 1000000 ORDER BY id

SELECT id, wide::bigint AS whole FROM records ORDER BY id

SELECT id, wide = n AS same FROM records ORDER BY id
