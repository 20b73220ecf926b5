-- Patterns in texts: what a point matches, the ends of lines, flags, replacements.

SELECT id FROM records WHERE note ~ 'line.break' ORDER BY id

SELECT id FROM records WHERE note ~ '^[A-Z]' ORDER BY id

SELECT id FROM records WHERE note ~ '[0-9]$' ORDER BY id

SELECT id FROM records WHERE note ~* 'error|warn' ORDER BY id

SELECT id FROM records WHERE note !~ '[aeiou]' ORDER BY id

SELECT id FROM records WHERE note !~* 'A' ORDER BY id

SELECT id FROM records WHERE note ~ '\d' ORDER BY id

SELECT id FROM records WHERE note ~ '^\s|\s$' ORDER BY id

SELECT id FROM records WHERE note ~ '\mthe\M' ORDER BY id

SELECT id FROM records WHERE note ~ '\yof\y' ORDER BY id

SELECT id FROM records WHERE note ~ '(?n)^second$' ORDER BY id

SELECT id FROM records WHERE note ~ '(?i)LINE' ORDER BY id

SELECT 'a' || chr(10) || 'b' ~ 'a.b' AS dot, 'a' || chr(10) || 'b' ~ '(?n)a.b' AS dot_of_line, 'a' || chr(10) || 'b' ~ '^b' AS second_line, 'a' || chr(10) || 'b' ~ '(?n)^b' AS each_line

SELECT ('a' || chr(10) || 'b') ~ 'a$' AS dollar, ('a' || chr(10)) ~ 'a$' AS before_last, ('a' || chr(10) || 'b') ~ 'a[^x]b' AS brackets, ('a' || chr(10) || 'b') ~ '(?n)a[^x]b' AS brackets_of_line

SELECT ('a' || chr(10) || 'b') ~ '(?p)a.b' AS partial, ('a' || chr(10) || 'b') ~ '(?w)^b' AS weird, ('a' || chr(10) || 'b') ~ '(?w)a.b' AS weird_dot

SELECT regexp_replace('The price is 100', '(\d+)', '$1.00') AS dollar, regexp_replace('The price is 100', '(\d+)', '\1.00') AS back, regexp_replace('a1', '\d', '<\&>') AS whole

SELECT regexp_replace('costs 5', '5', '$5') AS price, regexp_replace('costs 5', '\d', '&') AS ampersand, regexp_replace('a', 'a', '\\') AS slash

SELECT regexp_replace('2024-03-02', '(\d+)-(\d+)-(\d+)', '\3.\2.\1') AS day

SELECT regexp_replace('aaa', 'a', 'b') AS one, regexp_replace('aaa', 'a', 'b', 'g') AS all_of_them, regexp_replace('AaA', 'a', 'b', 'gi') AS any_case

SELECT id, regexp_replace(note, '\s+', ' ', 'g') AS tidy FROM records ORDER BY id

SELECT id, regexp_replace(note, '[^a-z]', '', 'gi') AS letters FROM records ORDER BY id

SELECT id, regexp_replace(note, '^.*$', 'all') AS r FROM records ORDER BY id

SELECT id, regexp_replace(note, '^(.).*', '\1') AS initial FROM records ORDER BY id

SELECT id, regexp_replace(note, '.', '*', 'gn') AS stars FROM records ORDER BY id

SELECT id, regexp_replace(note, '$', '!') AS r FROM records ORDER BY id

SELECT id, regexp_replace(note, '^', '> ', 'gn') AS quoted FROM records ORDER BY id

SELECT regexp_replace('abcabc', 'b', 'X', 3) AS from_third, regexp_replace('abcabc', 'b', 'X', 1, 2) AS second_only, regexp_replace('aBcabc', 'b', 'X', 1, 0, 'i') AS all_of_them

SELECT regexp_match('foobarbequebaz', '(bar)(beque)') AS groups, regexp_match('foobarbequebaz', 'bar.*baz') AS whole, regexp_match('abc', 'z') AS nothing

SELECT regexp_match('FOO', 'foo', 'i') AS m, regexp_match('ab', '(a)|(b)') AS optional

SELECT id, (regexp_match(note, '([0-9]+)'))[1] AS number FROM records ORDER BY id

SELECT id, (regexp_match(note, '(\w+)\s+(\w+)'))[2] AS second_word FROM records ORDER BY id

SELECT id, substring(note FROM '[0-9]+') AS digits FROM records ORDER BY id

SELECT substring('foobar' FROM 'o(.)b') AS group_of_it, substring('foobar' FROM 'o.b') AS whole, substring('foobar' FROM 'z') AS nothing

SELECT regexp_count('banana', 'a') AS n, regexp_count('banana', 'A', 1, 'i') AS i, regexp_count('banana', 'a', 3) AS later, regexp_count('aaaa', 'aa') AS apart

SELECT id, regexp_count(note, '\w+') AS words FROM records ORDER BY id

SELECT id, regexp_like(note, 'LINE', 'i') AS has FROM records ORDER BY id

SELECT regexp_like('Hello', '^hello$', 'i') AS a, regexp_like('Hello', 'ell') AS b, regexp_like('a' || chr(10) || 'b', 'a.b') AS c, regexp_like('a' || chr(10) || 'b', 'a.b', 'n') AS d

SELECT regexp_substr('foobarbaz', 'ba.') AS first, regexp_substr('foobarbaz', 'ba.', 1, 2) AS second, regexp_substr('foobarbaz', '(b)(a)(.)', 1, 1, '', 3) AS third_group

SELECT id, regexp_substr(note, '[A-Z][a-z]+') AS name FROM records ORDER BY id

SELECT regexp_instr('foobarbaz', 'ba.') AS first, regexp_instr('foobarbaz', 'ba.', 1, 2) AS second, regexp_instr('foobarbaz', 'zz') AS nothing

SELECT regexp_split_to_array('one  two three', '\s+') AS words, regexp_split_to_array('abc', '') AS letters, regexp_split_to_array('aXbxc', 'x', 'i') AS any_case

SELECT id, regexp_split_to_array(tags, '\s*,\s*') AS list FROM records ORDER BY id

SELECT id, cardinality(regexp_split_to_array(note, '\n')) AS lines FROM records ORDER BY id

SELECT regexp_replace('foobar', 'o+?', 'x') AS lazy, regexp_replace('xaaay', 'a{2}', '-') AS counted, regexp_replace('a.b', '\.', '-') AS escaped

SELECT 'straße' ~ '^\w+$' AS word, 'a_b' ~ '^\w+$' AS underscore, 'é' ~ '^[[:alpha:]]$' AS letter, '٣' ~ '^[0-9]$' AS digit

SELECT 'abc' ~ '[[:<:]]abc[[:>:]]' AS word, 'x abc y' ~ '\Aabc' AS begins, 'x abc' ~ 'abc\Z' AS ends

SELECT 'tab' || chr(9) ~ '\t' AS tab, 'a\b' ~ 'a\\b' AS backslash, 'a+b' ~ 'a\+b' AS plus, 'a{b' ~ 'a\{b' AS brace

SELECT 'A' ~ '\x41' AS hex, 'A' ~ '\u0041' AS unicode, 'a]b' ~ '[]]' AS bracket, 'a-b' ~ '[a\-]-' AS dash

SELECT 'foobar' ~ 'foo(?=bar)' AS ahead, 'foobaz' ~ 'foo(?!bar)' AS not_ahead, '***' ~ '***=***' AS literal

SELECT id FROM records WHERE note LIKE 'a%' OR note LIKE '%z' ORDER BY id

SELECT id FROM records WHERE note LIKE '%line_break%' ORDER BY id

SELECT 'a' || chr(10) || 'b' LIKE 'a_b' AS one_character, 'a%b' LIKE 'a\%b' AS escaped, 'axb' LIKE 'a\%b' AS not_escaped

SELECT station, count(*) FILTER (WHERE note ~ '[0-9]') AS with_digits FROM records GROUP BY station ORDER BY station

SELECT id FROM records WHERE tags ~ '(^|,)red(,|$)' ORDER BY id

SELECT id FROM records WHERE station ~ note ORDER BY id LIMIT 0

SELECT regexp_replace('ab12cd', '[[:digit:]]+', '#') AS digits, regexp_replace('ab cd', '[[:space:]]', '_') AS space, regexp_replace('Ab', '[[:upper:]]', 'x') AS upper

SELECT 'abc' ~ '' AS empty, NULL ~ 'a' AS of_null, 'a' ~ NULL AS by_null

SELECT regexp_replace('a b  c', ' ', '', 'g') AS gone, regexp_replace(NULL, 'a', 'b') AS n, regexp_match('x', NULL) AS m

SELECT regexp_replace('xx', 'x*', '-', 'g') AS stars, regexp_replace('abc', '', '-', 'g') AS between, regexp_count('abc', '') AS empties

SELECT regexp_replace('a  b', '[ ]{2} # two blanks', '_', 'x') AS ignored, regexp_replace('ab', 'a b', '-', 'x') AS expanded
