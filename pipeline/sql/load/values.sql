-- How a raw value becomes a number or a time. A count is NULL if the value is null and -1 if it is broken, so that one
-- comparison finds broken values. More than 10^27 is a broken counter; sums stay inside HUGEINT. Decimals may be zeros,
-- but not exactly three: `1.000` may mean a thousand.

CREATE OR REPLACE TEMP MACRO count_from_text(t) AS CASE
  WHEN t IS NULL THEN CAST(NULL AS HUGEINT)
  WHEN regexp_full_match(t, '\s*(\d{1,27}|-0)(\.(0{0,2}|0{4,}))?\s*')
    THEN TRY_CAST(split_part(trim(t), '.', 1) AS HUGEINT)
  ELSE CAST(-1 AS HUGEINT)
END;

-- For DOUBLE, DECIMAL and integers wider than 64 bits: whole numbers only. A footer's minimum and maximum may leave NaN out,
-- and DuckDB skips a comparison that they prove: the cast, which fails for NaN, decides.
CREATE OR REPLACE TEMP MACRO count_from_number(n) AS CASE
  WHEN n IS NULL THEN CAST(NULL AS HUGEINT)
  ELSE coalesce(CASE WHEN n >= 0 AND n <= 1e27 AND n = floor(n) THEN TRY_CAST(n AS HUGEINT) END, CAST(-1 AS HUGEINT))
END;

-- A former floating-point number that may have been rounded: large with a point, or with the exponent that the readers of
-- binary files write.
CREATE OR REPLACE TEMP MACRO is_inexact_text(t) AS CASE
  WHEN contains(t, 'e+') THEN regexp_full_match(t, '\s*-?\d(\.\d+)?e\+\d+\s*')
  WHEN len(t) > 16 AND regexp_full_match(t, '\s*-?\d{16,27}\.0*\s*')
  THEN abs(TRY_CAST(split_part(trim(t), '.', 1) AS HUGEINT)) >= 9007199254740992
  ELSE false
END;

-- Identifiers: any 64-bit integer, NULL if broken.
CREATE OR REPLACE TEMP MACRO id_from_text(t) AS CASE
  WHEN regexp_full_match(t, '\s*-?\d{1,19}(\.(0{0,2}|0{4,}))?\s*') AND NOT is_inexact_text(t)
    THEN TRY_CAST(split_part(trim(t), '.', 1) AS BIGINT)
END;

CREATE OR REPLACE TEMP MACRO id_from_number(n) AS CASE WHEN n = floor(n) THEN TRY_CAST(n AS BIGINT) END;

-- A time in another form of ISO 8601, in the form that DuckDB reads: without seconds or minutes, with lower-case t and z, with
-- a comma before the fraction, without separators. Any other text stays unchanged.
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

-- Converts a time with an offset; a time without one is UTC. NULL if broken. In DuckDB's cast to TIMESTAMPTZ, the name of a
-- zone also changes the zone of the rows after it. TIMESTAMP rejects such names, so they are cast separately. It reads a Z
-- correctly and much faster, but ignores any other offset.
CREATE OR REPLACE TEMP MACRO instant_from_text(t) AS CASE
  WHEN TRY_CAST(t AS TIMESTAMP) IS NULL
    THEN coalesce(TRY_CAST(t AS TIMESTAMPTZ), TRY_CAST(usual_form(t) AS TIMESTAMPTZ)) AT TIME ZONE 'UTC'
  WHEN ends_with(t, 'Z') THEN TRY_CAST(t AS TIMESTAMP)
  ELSE TRY_CAST(t AS TIMESTAMPTZ) AT TIME ZONE 'UTC'
END;

-- The digits of a time beyond microseconds, without trailing zeros.
CREATE OR REPLACE TEMP MACRO digits_below_microsecond(t) AS
  rtrim(regexp_extract(t, '[.,]\d{6}(\d+)', 1), '0');

-- The same, but an infinite time and a year of more than four digits are broken too: they are no day.
CREATE OR REPLACE TEMP MACRO utc_from_text(t) AS CASE
  WHEN instant_from_text(t) >= TIMESTAMP '0001-01-01' AND instant_from_text(t) < TIMESTAMP '10000-01-01'
  THEN instant_from_text(t)
END;

-- 48 bits of the hash of a request_id, as two integers that the sorter packs into eight bytes.
CREATE OR REPLACE TEMP MACRO id_high(request_id) AS CAST(hash(request_id) >> 32 AS UINTEGER);
CREATE OR REPLACE TEMP MACRO id_low(request_id) AS CAST((hash(request_id) >> 16) & 65535 AS USMALLINT);

-- JSON: the keys of an object with their values as texts, parsed once; NULL for anything else.
CREATE OR REPLACE TEMP MACRO json_texts(line) AS
  CASE WHEN json_valid(line) THEN json_transform(line, '"MAP(VARCHAR, VARCHAR)"') END;

-- Keys as they are compared. Most files need no change, which is found out much faster.
CREATE OR REPLACE TEMP MACRO plain_name(key) AS lower(trim(key, ' ' || chr(9)));
CREATE OR REPLACE TEMP MACRO plain_names(keys) AS CASE
  WHEN regexp_matches(array_to_string(keys, '_'), '[^a-z0-9_]') THEN list_transform(keys, lambda k: plain_name(k))
  ELSE keys
END;

CREATE OR REPLACE TEMP MACRO json_is_nested(object, key, value) AS CASE
  WHEN starts_with(value, '{') OR starts_with(value, '[') THEN json_type(object, '/' || key) IN ('OBJECT', 'ARRAY')
END;

-- The first column that occurs twice among the names.
CREATE OR REPLACE TEMP MACRO named_twice(names, columns) AS CASE
  WHEN len(list_distinct(names)) < len(names)
  THEN list_filter(columns, lambda c: len(list_filter(names, lambda n: n = c)) > 1)[1]
END;
