/** Opens one published snapshot for reading: its facts, read once, and its SQL. */
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { z } from 'zod'
import { daySchema, snapshotId, wholeSeconds } from '../../../pipeline/contract/calendar.ts'
import { COVERAGE_STATUSES, type CoverageStatus } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import { CONNECTION_LIMITS, openConnections, type ConnectionLimits, type Query } from './connections.ts'

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
}

/** A snapshot for queries. */
export interface ReadableSnapshot extends SnapshotFacts {
  /** Average rows of app_daily per day. */
  readonly rowsPerDay: number
  /** Whether its schema `fast` has candidates. */
  readonly hasCandidates: boolean
  readonly query: Query
}

export interface Snapshot extends ReadableSnapshot {
  /** The same over separate connections, so that visitors of the page do not block clients with a key. */
  readonly forPages: ReadableSnapshot
  /** Interrupts running queries and closes the file. */
  close(): Promise<void>
}

/** Few, since a page needs no key. One page sends eight queries at once. */
const PAGE_LIMITS: ConnectionLimits = { ...CONNECTION_LIMITS, connections: 2, waiting: 60 }

// Older snapshots have other tables in the schema; those are answered from all apps.
const HAS_CANDIDATES = `
  SELECT table_name FROM duckdb_tables()
  WHERE schema_name = 'fast' AND table_name = 'prefix_sums' AND estimated_size > 0`
const META = `
  SELECT epoch_ms(as_of) AS as_of, CAST(data_through AS VARCHAR) AS data_through,
    CAST(first_day AS VARCHAR) AS first_day, attribution, sources,
    (SELECT CAST(estimated_size AS DOUBLE) FROM duckdb_tables()
      WHERE schema_name = 'main' AND table_name = 'app_daily')
      / (1 + date_diff('day', first_day, data_through)) AS rows_per_day
  FROM meta`
const COVERAGE = `
  SELECT c.status, list(CAST(c.day AS VARCHAR) ORDER BY c.day)::JSON::VARCHAR AS days
  FROM coverage AS c, meta AS m
  WHERE c.day BETWEEN m.first_day AND m.data_through
  GROUP BY c.status`

const CATEGORIES = 'SELECT category, subcategory FROM categories'

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
const daysSchema = z.array(daySchema)

/**
 * DuckDB's memory for a snapshot, including pages of its file. Nothing is spilled: DuckDB's default is the folder of
 * the snapshot.
 */
const MEMORY = { memory_limit: '2GB', temp_directory: '' }

/** The real path of the folder behind `pointer`; undefined if there is none yet. */
export function snapshotFolder(pointer: string): string | undefined {
  return unlessAbsent(() => realpathSync(pointer))
}

/**
 * Opens the snapshot in `folder`, a real path: DuckDB identifies files by name, and a path through the pointer changes
 * its meaning.
 * @throws if the file is missing, damaged, not a snapshot, or was written after publishing.
 */
export async function openSnapshot(folder: string): Promise<Snapshot> {
  const path = join(folder, SNAPSHOT_FILE)
  refuseWritten(path)
  const instance = await DuckDBInstance.create(path, {
    access_mode: 'READ_ONLY',
    ...MEMORY,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    enable_external_access: 'false',
  })
  const connections = openConnections(instance)
  const pageConnections = openConnections(instance, PAGE_LIMITS)
  const close = async () => {
    await Promise.all([connections.close(), pageConnections.close()])
    instance.closeSync()
  }
  try {
    const { query } = connections
    await query("SET GLOBAL TimeZone = 'UTC'", {})
    const facts = { ...(await readFacts(query)), hasCandidates: (await query(HAS_CANDIDATES, {})).length > 0 }
    return { ...facts, query, forPages: { ...facts, query: pageConnections.query }, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A program that opened the file to write may have left a WAL beside it, which DuckDB would read too. */
function refuseWritten(path: string): void {
  if (!existsSync(`${path}.wal`)) return
  throw new Error(
    `${path} was opened to write after it was published. Remove ${path}.wal, which holds the changes, and open ` +
      'published files read-only',
  )
}

async function readFacts(query: Query): Promise<SnapshotFacts & Pick<ReadableSnapshot, 'rowsPerDay'>> {
  const [meta] = metaSchema.parse(await query(META, {}))
  const days = daysByStatus(coverageSchema.parse(await query(COVERAGE, {})))
  const categories = categoriesSchema.parse(await query(CATEGORIES, {}))
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
  }
}

function daysByStatus(rows: z.infer<typeof coverageSchema>): (status: CoverageStatus) => readonly string[] {
  const byStatus = new Map(rows.map(({ status, days }) => [status, daysSchema.parse(JSON.parse(days))]))
  return (status) => byStatus.get(status) ?? []
}
