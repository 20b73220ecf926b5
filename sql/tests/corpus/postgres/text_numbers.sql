-- Numbers as texts, texts as numbers, rounding, and what no number is.

SELECT id, x::text AS t FROM records ORDER BY id

SELECT id, CAST(y AS varchar) AS t FROM records ORDER BY id

SELECT id, n::text AS t, ok::text AS b FROM records ORDER BY id

SELECT id, 'x = ' || x AS label FROM records ORDER BY id

SELECT id, concat(station, ': ', x, ' / ', n) AS label FROM records ORDER BY id

SELECT id, concat_ws(', ', id, x, ok) AS label FROM records ORDER BY id

SELECT id, length(x::text) AS digits FROM records ORDER BY id

SELECT 7::double precision::text AS seven, 0.00001::double precision::text AS small, 1e20::double precision::text AS large, 0.1::double precision::text AS tenth

SELECT 1e15::double precision::text AS a, 123456789012345::double precision::text AS b, 1e16::double precision::text AS c, 0.0001::double precision::text AS d, 1.5e300::double precision::text AS e

SELECT 'NaN'::double precision::text AS nan, 'Infinity'::double precision::text AS inf, '-Infinity'::double precision::text AS minus

SELECT 1.5::real::text AS a, 0.1::real::text AS b, 1e10::real::text AS c, 16777216::real::text AS d

SELECT (-1.5)::double precision::text AS a, (-0.00000012)::double precision::text AS b

SELECT id FROM records WHERE x::text LIKE '%.5' ORDER BY id

SELECT x::text AS t, count(*) AS c FROM records GROUP BY x::text ORDER BY c DESC, t LIMIT 20

SELECT string_agg(x::text, ' ' ORDER BY id) AS xs FROM records

SELECT id, round(x) AS r FROM records ORDER BY id

SELECT round(0.5::double precision) AS a, round(1.5::double precision) AS b, round(2.5::double precision) AS c, round(-0.5::double precision) AS d, round(-2.5::double precision) AS e

SELECT id, round(x::numeric, 2) AS r FROM records WHERE x BETWEEN -1000000 AND 1000000 ORDER BY id

SELECT id, round(y::numeric, 1) AS r FROM records WHERE y BETWEEN -1000000 AND 1000000 ORDER BY id

SELECT round(2.5::numeric) AS a, round(3.5::numeric) AS b, round(-2.5::numeric) AS c, round(0.125::numeric, 2) AS d

SELECT id, x::int AS i, x::bigint AS b FROM records WHERE x BETWEEN -1000000 AND 1000000 ORDER BY id

SELECT id, round(x / 10) * 10 AS bucket FROM records WHERE x BETWEEN -1000000 AND 1000000 ORDER BY id

SELECT round(x / 10) * 10 AS bucket, count(*) AS c FROM records WHERE x BETWEEN -1000000 AND 1000000 GROUP BY 1 ORDER BY 1

SELECT id, floor(x) AS f, ceil(x) AS c, trunc(x) AS t FROM records ORDER BY id

SELECT id, sign(x) AS s, abs(x) AS a FROM records ORDER BY id

SELECT id FROM records WHERE n = '501' ORDER BY id

SELECT id FROM records WHERE id = '7' OR id = '8' ORDER BY id

SELECT id FROM records WHERE x > '1.5' ORDER BY id

SELECT id FROM records WHERE n IN ('1', '2', '3') ORDER BY id

SELECT id FROM records WHERE id BETWEEN '2' AND '5' ORDER BY id

SELECT id FROM records WHERE ok = 'true' ORDER BY id

SELECT id FROM records WHERE station = n::text ORDER BY id

SELECT id FROM records WHERE at > '2024-01-01T00:00:00Z' ORDER BY id

SELECT id, n || '' AS t FROM records ORDER BY id

SELECT id, station || n AS label FROM records ORDER BY id

SELECT '12'::int + 1 AS a, '1.5'::double precision * 2 AS b, ' 7 '::int AS c, '1e3'::double precision AS d

SELECT id, coalesce(n::text, 'none') AS t FROM records ORDER BY id

SELECT id, CASE WHEN x > 0 THEN x::text ELSE '-' END AS t FROM records ORDER BY id

SELECT id, x / nullif(y, 0) AS ratio FROM records WHERE abs(x) < 1e100 AND abs(y) > 1e-100 ORDER BY id

SELECT id, n / nullif(m, 0) AS whole, n % nullif(m, 0) AS rest FROM records ORDER BY id

SELECT id, sqrt(x) AS root FROM records WHERE x >= 0 ORDER BY id

SELECT id, ln(x) AS l, log(10, 100) AS two FROM records WHERE x > 0 ORDER BY id

SELECT id, CASE WHEN x > 0 THEN ln(x) END AS l FROM records ORDER BY id

SELECT id, CASE WHEN y <> 0 AND abs(x) < 1e100 AND abs(y) > 1e-100 THEN x / y END AS ratio FROM records ORDER BY id

SELECT id, exp(x) AS e FROM records WHERE x BETWEEN -100 AND 100 ORDER BY id

SELECT id, power(x, 2) AS p, power(2, n) AS q FROM records WHERE x BETWEEN -1000 AND 1000 AND n BETWEEN 0 AND 100 ORDER BY id

SELECT id, acos(x) AS a, asin(x) AS b FROM records WHERE x BETWEEN -1 AND 1 ORDER BY id

SELECT power(0::double precision, 0) AS a, power(-2::double precision, 3) AS b, power(4, 0.5) AS c, exp(0) AS d

SELECT atan2(1, 1) AS a, degrees(pi()) AS b, radians(180) AS c, cbrt(27) AS d

SELECT log(100) AS ten, ln(exp(1)) AS one, log(2, 8) AS three

SELECT 'Infinity'::double precision > 1e308 AS more, 'NaN'::double precision = 'NaN'::double precision AS same, 'NaN'::double precision > 'Infinity'::double precision AS most

SELECT 'Infinity'::double precision + 1 AS a, 'NaN'::double precision * 0 AS b, sqrt('Infinity'::double precision) AS c, exp('-Infinity'::double precision) AS d

SELECT id, to_hex(n) AS h FROM records WHERE n >= 0 ORDER BY id

SELECT id, left(n::text, 1) AS first_digit, right(n::text, 1) AS last_digit FROM records ORDER BY id

SELECT left(abs(n)::text, 1) AS digit, count(*) AS c FROM records GROUP BY 1 ORDER BY 1

SELECT id, greatest(x, y) AS g, least(x, y) AS l, greatest(n, 5) AS five FROM records ORDER BY id

SELECT true::text AS t, false::text AS f, true::int AS one, 0::boolean AS no

SELECT sum(x)::text AS s, max(y)::text AS m FROM records WHERE abs(x) < 1000 AND abs(y) < 1000

SELECT id, replace(x::text, '.', ',') AS comma FROM records ORDER BY id

SELECT id, trim(both ' ' FROM note) AS t, length(note) AS l FROM records ORDER BY id

SELECT x::int, x::text, x::int FROM records WHERE x BETWEEN -1000 AND 1000 ORDER BY id
