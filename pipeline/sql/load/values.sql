-- How a raw value becomes a number or a time. A count is NULL where the value is null and -1 where it is broken,
-- so that one comparison tells good from bad; more than 10^27 is a broken counter, and sums stay inside HUGEINT.

CREATE OR REPLACE TEMP MACRO count_from_text(t) AS CASE
  WHEN t IS NULL THEN CAST(NULL AS HUGEINT)
  WHEN regexp_full_match(t, '\s*\d{1,27}(\.0*)?\s*') THEN TRY_CAST(split_part(trim(t), '.', 1) AS HUGEINT)
  ELSE CAST(-1 AS HUGEINT)
END;

-- For DOUBLE, DECIMAL and integers wider than 64 bits: whole numbers only.
CREATE OR REPLACE TEMP MACRO count_from_number(n) AS CASE
  WHEN n IS NULL THEN CAST(NULL AS HUGEINT)
  WHEN n >= 0 AND n <= 1e27 AND n = floor(n) THEN TRY_CAST(n AS HUGEINT)
  ELSE CAST(-1 AS HUGEINT)
END;

-- Identifiers: any 64-bit integer, NULL where broken.
CREATE OR REPLACE TEMP MACRO id_from_text(t) AS CASE
  WHEN regexp_full_match(t, '\s*-?\d{1,19}(\.0*)?\s*') THEN TRY_CAST(split_part(trim(t), '.', 1) AS BIGINT)
END;

CREATE OR REPLACE TEMP MACRO id_from_number(n) AS CASE WHEN n = floor(n) THEN TRY_CAST(n AS BIGINT) END;

-- A time with an offset is converted, one without is UTC already; NULL where broken. In DuckDB's cast the name of a zone
-- counts for the texts without any below it as well. TIMESTAMP takes no such names: they, and what is broken, are cast
-- apart from the rest. It takes a Z for what it is, much faster, and passes over any other offset.
CREATE OR REPLACE TEMP MACRO instant_from_text(t) AS CASE
  WHEN TRY_CAST(t AS TIMESTAMP) IS NULL THEN TRY_CAST(t AS TIMESTAMPTZ) AT TIME ZONE 'UTC'
  WHEN ends_with(t, 'Z') THEN TRY_CAST(t AS TIMESTAMP)
  ELSE TRY_CAST(t AS TIMESTAMPTZ) AT TIME ZONE 'UTC'
END;

-- The same, but an infinite one, and one in a year that takes more than four digits, is broken too: it names no day.
CREATE OR REPLACE TEMP MACRO utc_from_text(t) AS CASE
  WHEN instant_from_text(t) >= TIMESTAMP '0001-01-01' AND instant_from_text(t) < TIMESTAMP '10000-01-01'
  THEN instant_from_text(t)
END;

-- 48 bits of the hash of a request_id, in two integers that the sorter packs into eight bytes.
CREATE OR REPLACE TEMP MACRO id_high(request_id) AS CAST(hash(request_id) >> 32 AS UINTEGER);
CREATE OR REPLACE TEMP MACRO id_low(request_id) AS CAST((hash(request_id) >> 16) & 65535 AS USMALLINT);
