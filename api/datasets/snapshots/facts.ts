/** The facts of a snapshot, read once from its file. */
import { z } from 'zod'
import { daySchema, snapshotId, wholeSeconds } from '../../../pipeline/contract/calendar.ts'
import { COVERAGE_STATUSES, type CoverageStatus } from '../../../pipeline/contract/dataset.ts'
import type { Query } from './database.ts'

/** The facts of a snapshot, without a query; days are UTC, `YYYY-MM-DD`. */
export interface SnapshotFacts {
  /** Identifier: as_of in basic form, also the name of its folder. */
  readonly id: string
  /** Time it was computed, ISO 8601 UTC in whole seconds. */
  readonly asOf: string
  /** The most recent completed day in the data. */
  readonly dataThrough: string
  /** First day in the data. */
  readonly firstDay: string
  /** Number of days per status of the table coverage, from the first to the last day. */
  readonly coverage: Readonly<Record<CoverageStatus, number>>
  /** Days without delivered usage. */
  readonly daysMissing: readonly string[]
  /** Days with rejected rows. */
  readonly daysPartial: readonly string[]
  /** The attribution line for reuse of the data. */
  readonly attribution: string
  /** Credit lines of the data's sources, also required. */
  readonly sources: string | null
  /** Average rows of app_daily per day. */
  readonly rowsPerDay: number
  /** Whether it has candidates, which prove most pages: a snapshot of few apps has none. */
  readonly hasCandidates: boolean
}

/** A snapshot for queries. */
export interface Snapshot extends SnapshotFacts {
  readonly query: Query
}

const META = `
  WITH tables AS (
    SELECT schema_name || '.' || table_name AS name, estimated_size AS size
    FROM duckdb_tables() WHERE database_name = current_database()
  )
  SELECT epoch_ms(as_of) AS as_of, CAST(data_through AS VARCHAR) AS data_through,
    CAST(first_day AS VARCHAR) AS first_day, attribution, sources,
    (SELECT CAST(size AS DOUBLE) FROM tables WHERE name = 'main.app_daily')
      / (1 + date_diff('day', first_day, data_through)) AS rows_per_day,
    EXISTS (SELECT 1 FROM tables WHERE name = 'fast.prefix_sums' AND size > 0) AS has_candidates
  FROM meta`

const COVERAGE = `
  SELECT CAST(c.day AS VARCHAR) AS day, c.status
  FROM coverage AS c, meta AS m
  WHERE c.day BETWEEN m.first_day AND m.data_through
  ORDER BY c.day`

const metaSchema = z.tuple([
  z.object({
    as_of: z.bigint(),
    data_through: daySchema,
    first_day: daySchema,
    attribution: z.string(),
    sources: z.string().nullable(),
    rows_per_day: z.number(),
    has_candidates: z.boolean(),
  }),
])
const coverageSchema = z.array(z.object({ day: daySchema, status: z.enum(COVERAGE_STATUSES) }))

/** @throws if the database is not a snapshot. */
export async function readFacts(query: Query): Promise<SnapshotFacts> {
  const [meta] = metaSchema.parse(await query(META, {}))
  const coverage = coverageSchema.parse(await query(COVERAGE, {}))
  const daysOf = (status: CoverageStatus) =>
    coverage.filter((each) => each.status === status).map(({ day }) => day)
  const asOf = new Date(Number(meta.as_of))
  return {
    id: snapshotId(asOf),
    asOf: wholeSeconds(asOf),
    dataThrough: meta.data_through,
    firstDay: meta.first_day,
    coverage: {
      complete: daysOf('complete').length,
      partial: daysOf('partial').length,
      restated: daysOf('restated').length,
      missing: daysOf('missing').length,
    },
    daysMissing: daysOf('missing'),
    daysPartial: daysOf('partial'),
    attribution: meta.attribution,
    sources: meta.sources,
    rowsPerDay: meta.rows_per_day,
    hasCandidates: meta.has_candidates,
  }
}
