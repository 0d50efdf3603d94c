-- How a raw value becomes a number or a time. A count is NULL where the value is null and -1 where it is broken, so that one
-- comparison tells valid from broken; more than 10^27 is a broken counter, and sums stay inside HUGEINT. Zeros behind the
-- point are none, but for three: `1.000` may be a thousand.

CREATE OR REPLACE TEMP MACRO count_from_text(t) AS CASE
  WHEN t IS NULL THEN CAST(NULL AS HUGEINT)
  WHEN regexp_full_match(t, '\s*(\d{1,27}|-0)(\.(0{0,2}|0{4,}))?\s*')
    THEN TRY_CAST(split_part(trim(t), '.', 1) AS HUGEINT)
  ELSE CAST(-1 AS HUGEINT)
END;

-- For DOUBLE, DECIMAL and integers wider than 64 bits: whole numbers only. What a footer states as least and greatest may
-- leave NaN out, and DuckDB takes a comparison for true by it: the cast, which NaN fails, decides.
CREATE OR REPLACE TEMP MACRO count_from_number(n) AS CASE
  WHEN n IS NULL THEN CAST(NULL AS HUGEINT)
  ELSE coalesce(CASE WHEN n >= 0 AND n <= 1e27 AND n = floor(n) THEN TRY_CAST(n AS HUGEINT) END, CAST(-1 AS HUGEINT))
END;

-- A number that was a floating-point one on its way and may have been rounded: a large one with a point, or with an exponent,
-- as which the readers of binary files hand it on.
CREATE OR REPLACE TEMP MACRO is_inexact_text(t) AS CASE
  WHEN contains(t, 'e+') THEN regexp_full_match(t, '\s*-?\d(\.\d+)?e\+\d+\s*')
  WHEN len(t) > 16 AND regexp_full_match(t, '\s*-?\d{16,27}\.0*\s*')
  THEN abs(TRY_CAST(split_part(trim(t), '.', 1) AS HUGEINT)) >= 9007199254740992
  ELSE false
END;

-- Identifiers: any 64-bit integer, NULL where broken.
CREATE OR REPLACE TEMP MACRO id_from_text(t) AS CASE
  WHEN regexp_full_match(t, '\s*-?\d{1,19}(\.(0{0,2}|0{4,}))?\s*') AND NOT is_inexact_text(t)
    THEN TRY_CAST(split_part(trim(t), '.', 1) AS BIGINT)
END;

CREATE OR REPLACE TEMP MACRO id_from_number(n) AS CASE WHEN n = floor(n) THEN TRY_CAST(n AS BIGINT) END;

-- A time in one of the other forms of ISO 8601 as DuckDB reads it: without seconds or minutes, with lower-case t and z, with
-- a comma before the fraction, without separators. Any other text stays what it is.
CREATE OR REPLACE TEMP MACRO usual_form(t) AS upper(regexp_replace(
  replace(
    regexp_replace(
      replace(trim(t), ',', '.'),
      '^(\d{4})-?(\d\d)-?(\d\d)[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(\.\d+)?)?)?([Zz]|[+-]\d\d(?::?\d\d)?)?$',
      '\1-\2-\3T\4:\5:\6\7\8'
    ),
    '::', ':00:00'
  ),
  ':([Zz+-]|$)', ':00\1'
));

-- A time with an offset is converted, one without is UTC already; NULL where broken. In DuckDB's cast the name of a zone
-- counts for the texts without any below it as well. TIMESTAMP takes no such names: they, and what is broken, are cast
-- apart from the rest. It takes a Z for what it is, much faster, and passes over any other offset.
CREATE OR REPLACE TEMP MACRO instant_from_text(t) AS CASE
  WHEN TRY_CAST(t AS TIMESTAMP) IS NULL
    THEN coalesce(TRY_CAST(t AS TIMESTAMPTZ), TRY_CAST(usual_form(t) AS TIMESTAMPTZ)) AT TIME ZONE 'UTC'
  WHEN ends_with(t, 'Z') THEN TRY_CAST(t AS TIMESTAMP)
  ELSE TRY_CAST(t AS TIMESTAMPTZ) AT TIME ZONE 'UTC'
END;

-- The digits of a time behind the sixth of its fraction, without zeros at the end.
CREATE OR REPLACE TEMP MACRO digits_below_microsecond(t) AS
  rtrim(regexp_extract(t, '[.,]\d{6}(\d+)', 1), '0');

-- The same, but an infinite one, and one in a year that takes more than four digits, is broken too: it names no day.
CREATE OR REPLACE TEMP MACRO utc_from_text(t) AS CASE
  WHEN instant_from_text(t) >= TIMESTAMP '0001-01-01' AND instant_from_text(t) < TIMESTAMP '10000-01-01'
  THEN instant_from_text(t)
END;

-- 48 bits of the hash of a request_id, in two integers that the sorter packs into eight bytes.
CREATE OR REPLACE TEMP MACRO id_high(request_id) AS CAST(hash(request_id) >> 32 AS UINTEGER);
CREATE OR REPLACE TEMP MACRO id_low(request_id) AS CAST((hash(request_id) >> 16) & 65535 AS USMALLINT);

-- JSON: the keys of an object, and its values whatever capitals and spaces its keys have. `names` are the keys as they are
-- compared.
CREATE OR REPLACE TEMP MACRO json_keys_of(line) AS
  CASE WHEN json_valid(line) AND json_type(line) = 'OBJECT' THEN json_keys(line) END;
CREATE OR REPLACE TEMP MACRO plain_name(key) AS lower(trim(key, ' ' || chr(9)));
CREATE OR REPLACE TEMP MACRO json_path(keys, names, name) AS '/' || keys[list_position(names, name)];

CREATE OR REPLACE TEMP MACRO json_value(object, keys, names, name) AS
  CASE WHEN list_contains(names, name) THEN json_extract_string(object, json_path(keys, names, name)) END;

CREATE OR REPLACE TEMP MACRO json_is_nested(object, keys, names, name, value) AS
  (starts_with(value, '{') OR starts_with(value, '['))
    AND json_type(object, json_path(keys, names, name)) IN ('OBJECT', 'ARRAY');

-- The first of the columns whose name stands twice.
CREATE OR REPLACE TEMP MACRO named_twice(names, columns) AS CASE
  WHEN len(list_distinct(names)) < len(names)
  THEN list_filter(columns, lambda c: len(list_filter(names, lambda n: n = c)) > 1)[1]
END;
