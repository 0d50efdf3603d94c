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
  /** The categories and subcategories of its taxonomy, which may be older than the current one. */
  readonly categories: ReadonlySet<string>
  /** The attribution line for reuse of the data. */
  readonly attribution: string
  /** Credit lines of the data's sources, also required. */
  readonly sources: string | null
  /** Average rows of app_daily per day. */
  readonly rowsPerDay: number
  /** The tables and macros in it, as `schema.name`: those of older versions have fewer. */
  readonly contents: ReadonlySet<string>
}

/** A snapshot for queries. */
export interface Snapshot extends SnapshotFacts {
  readonly query: Query
}

const META = `
  SELECT epoch_ms(as_of) AS as_of, CAST(data_through AS VARCHAR) AS data_through,
    CAST(first_day AS VARCHAR) AS first_day, attribution, sources,
    (SELECT CAST(estimated_size AS DOUBLE) FROM duckdb_tables()
      WHERE database_name = current_database() AND schema_name = 'main' AND table_name = 'app_daily')
      / (1 + date_diff('day', first_day, data_through)) AS rows_per_day
  FROM meta`
const COVERAGE = `
  SELECT c.status, list(CAST(c.day AS VARCHAR) ORDER BY c.day)::JSON::VARCHAR AS days
  FROM coverage AS c, meta AS m
  WHERE c.day BETWEEN m.first_day AND m.data_through
  GROUP BY c.status`
const CATEGORIES = 'SELECT category, subcategory FROM categories'
const CONTENTS = `
  SELECT schema_name || '.' || table_name AS name FROM duckdb_tables()
  WHERE database_name = current_database() AND estimated_size > 0
  UNION
  SELECT schema_name || '.' || function_name FROM duckdb_functions()
  WHERE database_name = current_database()`

const metaSchema = z.tuple([
  z.object({
    as_of: z.bigint(),
    data_through: daySchema,
    first_day: daySchema,
    attribution: z.string(),
    sources: z.string().nullable(),
    rows_per_day: z.number(),
  }),
])
const coverageSchema = z.array(z.object({ status: z.enum(COVERAGE_STATUSES), days: z.string() }))
const categoriesSchema = z.array(z.object({ category: z.string(), subcategory: z.string() }))
const contentsSchema = z.array(z.object({ name: z.string() }))
const daysSchema = z.array(daySchema)

/** @throws if the database is not a snapshot. */
export async function readFacts(query: Query): Promise<SnapshotFacts> {
  const [meta] = metaSchema.parse(await query(META, {}))
  const days = daysByStatus(coverageSchema.parse(await query(COVERAGE, {})))
  const categories = categoriesSchema.parse(await query(CATEGORIES, {}))
  const contents = contentsSchema.parse(await query(CONTENTS, {}))
  const asOf = new Date(Number(meta.as_of))
  return {
    id: snapshotId(asOf),
    asOf: wholeSeconds(asOf),
    dataThrough: meta.data_through,
    firstDay: meta.first_day,
    coverage: {
      complete: days('complete').length,
      partial: days('partial').length,
      restated: days('restated').length,
      missing: days('missing').length,
    },
    daysMissing: days('missing'),
    daysPartial: days('partial'),
    categories: new Set(categories.flatMap(({ category, subcategory }) => [category, subcategory])),
    attribution: meta.attribution,
    sources: meta.sources,
    rowsPerDay: meta.rows_per_day,
    contents: new Set(contents.map(({ name }) => name)),
  }
}

function daysByStatus(rows: z.infer<typeof coverageSchema>): (status: CoverageStatus) => readonly string[] {
  const byStatus = new Map(rows.map(({ status, days }) => [status, daysSchema.parse(JSON.parse(days))]))
  return (status) => byStatus.get(status) ?? []
}
