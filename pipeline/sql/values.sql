-- How a raw value becomes a number or a time, and which raw row is valid. A count is NULL if the value is null and -1 if it
-- is broken, so that one comparison finds broken values.

-- Words by which programs write null in a text format. A list of five would be a join.
CREATE OR REPLACE TEMP MACRO without_null_word(t) AS CASE WHEN t NOT IN ('\N', 'NULL', 'null', 'NA') THEN t END;

-- For DOUBLE, DECIMAL and integers wider than 64 bits; from `inexact` on, neighbouring integers share a number. A footer's
-- minimum and maximum may leave NaN out, and DuckDB skips a comparison that they prove: the cast, which fails for NaN,
-- decides. It is tried by way of DOUBLE first, since a DECIMAL becomes a BIGINT ten times as slowly.
CREATE OR REPLACE TEMP MACRO count_from_number(n, inexact) AS CASE
  WHEN n IS NULL THEN CAST(NULL AS BIGINT)
  WHEN TRY_CAST(CAST(n AS DOUBLE) AS BIGINT) = n AND n < inexact THEN coalesce(TRY_CAST(CAST(n AS DOUBLE) AS BIGINT), -1)
  WHEN TRY_CAST(n AS BIGINT) = n AND n < inexact THEN coalesce(TRY_CAST(n AS BIGINT), -1)
  ELSE CAST(-1 AS BIGINT)
END;

-- An exact integer in any notation counts: a plain one below 2^63, one with decimals or an exponent below 2^53. Decimals may
-- be zeros, but not exactly three: `1.000` may mean a thousand. The cast is tried first, since it is four times as fast.
CREATE OR REPLACE TEMP MACRO odd_count(t) AS CASE
  WHEN regexp_full_match(t, '\s*\+?\d{1,19}\s*') THEN TRY_CAST(trim(t) AS BIGINT)
  WHEN regexp_full_match(t, '\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*') AND NOT regexp_matches(t, '^\s*[+-]?\d+\.\d{3}\s*$')
    THEN count_from_number(TRY_CAST(trim(t) AS DOUBLE), 9007199254740992)
END;

-- Whether the value of a text has this many digits, at most six.
CREATE OR REPLACE TEMP MACRO has_digits(t, digits) AS
  TRY_CAST(t AS BIGINT) BETWEEN [0, 10, 100, 1000, 10000, 100000][digits] AND 999999;

-- Nearly every count has at most six characters, and its value as many digits. Whatever else the cast takes for a number of that
-- size has fewer digits than characters (1.5, 1_000, 0x1F), or is written with an exponent (5e2). pandas writes 5.0 where a
-- column has a null.
CREATE OR REPLACE TEMP MACRO count_from_text(t) AS CASE
  WHEN has_digits(t, strlen(t)) THEN TRY_CAST(t AS BIGINT)
  WHEN ends_with(t, '.0') AND has_digits(t, strlen(t) - 2) THEN TRY_CAST(t AS BIGINT)
  WHEN CAST(TRY_CAST(t AS BIGINT) AS VARCHAR) = t THEN TRY_CAST(t AS BIGINT)
  WHEN without_null_word(t) IS NOT NULL THEN coalesce(odd_count(t), -1)
END;

-- Identifiers; NULL if broken.
CREATE OR REPLACE TEMP MACRO id_from_text(t) AS CASE WHEN count_from_text(t) >= 0 THEN count_from_text(t) END;

-- Whether the identity of an app with this name is the name itself in lower case (app-identity.ts): ASCII, one line, no spaces
-- to remove, nothing to cut.
CREATE OR REPLACE TEMP MACRO is_simple_name(t) AS length(t) <= 80 AND regexp_full_match(t, '[!-~]+( [!-~]+)*');

-- A TIMESTAMPTZ as a TIMESTAMP in UTC; infinity is NULL. AT TIME ZONE and a cast take seventy times as long.
CREATE OR REPLACE TEMP MACRO utc_from_zoned(t) AS make_timestamp(epoch_us(t));

-- A time of ISO 8601, of a database, or as Go, Java and Rust print it: also without seconds or minutes, with a comma before the
-- fraction, without separators, with a space or a zone's name beside its offset. A time without an offset is UTC. NULL for
-- anything else.
CREATE OR REPLACE TEMP MACRO time_parts(t) AS regexp_extract(
  trim(t),
  '^(\d{4})-?(\d\d)-?(\d\d)(?:[Tt ]+(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?)? ?(?:([+-]\d\d)(?::?(\d\d)(?::00)?)?(?: [A-Z]{3,5})?|[Zz]|UTC|GMT)?(?: m=[+-][\d.]+|\[[\w/+-]+\])?$',
  ['year', 'month', 'day', 'hour', 'minute', 'second', 'fraction', 'offset_hour', 'offset_minute']
);
CREATE OR REPLACE TEMP MACRO time_from_parts(p) AS utc_from_zoned(TRY_CAST(
  concat(
    p.year, '-', p.month, '-', p.day, ' ', lpad(p.hour, 2, '0'), ':', lpad(p.minute, 2, '0'), ':', lpad(p.second, 2, '0'),
    '.', rpad(substr(p.fraction, 1, 6), 6, '0'), CASE WHEN p.offset_hour = '' THEN '+00' ELSE p.offset_hour END,
    ':', lpad(p.offset_minute, 2, '0')
  ) AS TIMESTAMPTZ
));

-- DuckDB's casts are much faster. The one to TIMESTAMP ignores an offset, a plus, or a minus behind a colon, but for Z; the one
-- to TIMESTAMPTZ takes half a millisecond to refuse what might be the name of a zone. NULL where they do not decide.
CREATE OR REPLACE TEMP MACRO utc_by_cast(t) AS CASE
  WHEN ends_with(t, 'Z') THEN TRY_CAST(t AS TIMESTAMP)
  WHEN contains(t, '+') OR t LIKE '%:%-%' THEN CASE
    WHEN ends_with(t, '+00:00') OR ends_with(t, '+00') THEN TRY_CAST(t AS TIMESTAMP)
    WHEN regexp_full_match(t, '[\d-]{10}[T ][\d:.]+[+-]\d\d(:?\d\d)?') THEN utc_from_zoned(TRY_CAST(t AS TIMESTAMPTZ))
  END
  WHEN strlen(t) > 9 THEN TRY_CAST(t AS TIMESTAMP)
END;

-- The parts are used several times, and DuckDB works out what is used several times for every row: for NULL that costs
-- nothing.
CREATE OR REPLACE TEMP MACRO utc_from_text(t) AS coalesce(
  utc_by_cast(t), time_from_parts(time_parts(CASE WHEN utc_by_cast(t) IS NULL THEN t END))
);

-- An id, which is a floating-point number where some rows have none and a program knows no other null for integers.
CREATE OR REPLACE TEMP MACRO id_as_integer(t) AS
  CASE WHEN ends_with(t, '.0') THEN regexp_replace(t, '^(\d+)\.0$', '\1') ELSE nullif(t, '') END;

-- A model is `author/slug`, with an optional variant after a colon. Variants count for their model; any other text is unknown.
CREATE OR REPLACE TEMP MACRO model_from_text(t) AS nullif(
  regexp_extract(
    t, '^\s*([A-Za-z0-9][A-Za-z0-9_.+@~-]{0,99}/[A-Za-z0-9][A-Za-z0-9_.+@~-]{0,99})(:[A-Za-z0-9_.+@~-]+)?\s*$', 1
  ),
  ''
);

-- The name of a provider; a longer text is none.
CREATE OR REPLACE TEMP MACRO provider_from_text(t) AS CASE WHEN len(t) <= 100 THEN t END;

-- True of most rows of most days, and of valid ones with tokens alone. Without the bit operations DuckDB would believe a
-- Parquet footer that says there is no negative number.
CREATE OR REPLACE TEMP MACRO is_plain(
  day, fault, ts, app_id, has_app, prompt_tokens, completion_tokens, requests, row_count
) AS fault IS NULL AND CAST(ts AS DATE) = day
  AND (coalesce(app_id, CASE WHEN has_app THEN 0 END) | prompt_tokens | completion_tokens | requests) >= 0
  AND (requests | 0) <= 1000000000000 AND (row_count | 0) >= 1;

-- The violation of a row of usage; NULL for a valid one. Requests may be unknown (they count as one), and so may both token
-- counts; a single unknown token count is a violation. The text of the app is left to text_violation.
CREATE OR REPLACE TEMP MACRO violation(
  day, fault, ts, app_id, has_app, prompt_tokens, completion_tokens, requests, row_count
) AS CASE
  WHEN is_plain(day, fault, ts, app_id, has_app, prompt_tokens, completion_tokens, requests, row_count) THEN NULL
  WHEN fault IS NOT NULL THEN fault
  WHEN ts IS NULL THEN 'ts is not a UTC timestamp such as 2026-01-05T10:00:00Z'
  WHEN CAST(ts AS DATE) <> day THEN 'ts is not on the day of its folder'
  WHEN coalesce((app_id | 0) < 0, NOT has_app) THEN 'app_id is not an integer, 0 or more'
  WHEN coalesce((prompt_tokens | 0) < 0, completion_tokens IS NOT NULL)
    THEN 'prompt_tokens is not an integer, 0 or more'
  WHEN coalesce((completion_tokens | 0) < 0, prompt_tokens IS NOT NULL)
    THEN 'completion_tokens is not an integer, 0 or more'
  WHEN (requests | 0) < 0 OR (requests | 0) > 1000000000000 THEN 'requests is not an integer from 0 to 10^12'
  WHEN (row_count | 0) < 1 THEN 'row_count is not an integer, 1 or more'
END;

-- The violation of the text by which a row names its app: control characters, or bytes that are no UTF-8.
CREATE OR REPLACE TEMP MACRO text_violation(app) AS CASE
  WHEN regexp_matches(app, '[\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x{9F}\x{FFFD}]')
    THEN 'app is not readable text in UTF-8'
END;

-- The violation of an id in which bytes or characters are no text, since such ids may all be the same.
CREATE OR REPLACE TEMP MACRO id_violation(request_id) AS CASE
  WHEN contains(request_id, chr(65533)) THEN 'request_id is not readable text in UTF-8'
END;
