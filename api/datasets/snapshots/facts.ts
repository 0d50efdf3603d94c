/** The facts of a snapshot, read once from its file. */
import { z } from 'zod'
import { daySchema } from '../../../pipeline/contract/calendar.ts'
import type { Query } from './database.ts'

const days = z.int().nonnegative()
/** Number of days per status of the table coverage. */
export const coverageSchema = z.strictObject({ complete: days, partial: days, restated: days, missing: days })

/** Days are UTC, `YYYY-MM-DD`. */
const factsSchema = z.object({
  /** Identifier: as_of in basic form, also the name of its folder. */
  id: z.string(),
  /** Time it was computed, ISO 8601 UTC in whole seconds. */
  as_of: z.string(),
  /** The most recent completed day in the data. */
  data_through: daySchema,
  /** First day in the data. */
  first_day: daySchema,
  /** From the first to the last day. */
  coverage: coverageSchema,
  /** Days without delivered usage. */
  days_missing: z.array(daySchema),
  /** Days with rejected rows. */
  days_partial: z.array(daySchema),
  /** The attribution line for reuse of the data. */
  attribution: z.string(),
  /** Credit lines of the data's sources, also required. */
  sources: z.string().nullable(),
  /** Average rows of app_daily per day. */
  rows_per_day: z.number(),
  /** Whether it has candidates, which prove most pages: a snapshot of few apps has none. */
  has_candidates: z.boolean(),
})
export type SnapshotFacts = Readonly<z.infer<typeof factsSchema>>

/** A snapshot for queries. */
export type Snapshot = SnapshotFacts & { readonly query: Query }

const NUMBER_OF = (status: string) => `CAST(count(*) FILTER (status = '${status}') AS INTEGER)`
const DAYS_OF = (status: string) =>
  `coalesce(list(CAST(day AS VARCHAR) ORDER BY day) FILTER (status = '${status}'), [])`
const FACTS = `
  WITH tables AS (
    SELECT schema_name || '.' || table_name AS name, estimated_size AS size
    FROM duckdb_tables() WHERE database_name = current_database()
  ),
  covered AS (
    SELECT c.day, c.status FROM coverage AS c, meta AS m WHERE c.day BETWEEN m.first_day AND m.data_through
  )
  SELECT strftime(m.as_of, '%Y%m%dT%H%M%SZ') AS id, strftime(m.as_of, '%Y-%m-%dT%H:%M:%SZ') AS as_of,
    CAST(m.data_through AS VARCHAR) AS data_through, CAST(m.first_day AS VARCHAR) AS first_day,
    (
      SELECT {complete: ${NUMBER_OF('complete')}, partial: ${NUMBER_OF('partial')},
        restated: ${NUMBER_OF('restated')}, missing: ${NUMBER_OF('missing')}} FROM covered
    ) AS coverage,
    (SELECT ${DAYS_OF('missing')} FROM covered) AS days_missing,
    (SELECT ${DAYS_OF('partial')} FROM covered) AS days_partial,
    m.attribution, m.sources,
    (SELECT CAST(size AS DOUBLE) FROM tables WHERE name = 'main.app_daily')
      / (1 + date_diff('day', m.first_day, m.data_through)) AS rows_per_day,
    EXISTS (SELECT 1 FROM tables WHERE name = 'fast.prefix_sums' AND size > 0) AS has_candidates
  FROM meta AS m`

/** @throws if the database is not a snapshot. */
export async function readFacts(query: Query): Promise<SnapshotFacts> {
  const [row] = await query(FACTS, {})
  return factsSchema.parse(row)
}
