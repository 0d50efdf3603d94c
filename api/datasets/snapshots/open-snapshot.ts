/** One published snapshot, opened for reading: its facts, read once, and its SQL. */
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { z } from 'zod'
import { daySchema, snapshotId, wholeSeconds } from '../../../pipeline/contract/calendar.ts'
import { COVERAGE_STATUSES, type CoverageStatus } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import { CONNECTION_LIMITS, openConnections, type ConnectionLimits, type Connections } from './connections.ts'

/** What is known of a snapshot without asking it; days are UTC, `YYYY-MM-DD`. */
export interface SnapshotFacts {
  /** Identifier: as_of in basic form, which is the name of its folder too. */
  readonly id: string
  /** When it was computed, ISO 8601 UTC in whole seconds. */
  readonly asOf: string
  /** The most recent completed day in the data. */
  readonly dataThrough: string
  /** First day in the data. */
  readonly firstDay: string
  /** How many days from the first to the last have each status of the table coverage. */
  readonly coverage: Readonly<Record<CoverageStatus, number>>
  /** Days of which no usage was delivered. */
  readonly daysMissing: readonly string[]
  /** Days of which some rows were rejected. */
  readonly daysPartial: readonly string[]
  /** The line to print when the data is reused. */
  readonly attribution: string
}

/** A snapshot as its rankings are read. */
export interface ReadableSnapshot extends SnapshotFacts {
  /** Rows of app_daily that a day has on average. */
  readonly rowsPerDay: number
  /** Asks the public tables and macros. */
  readonly query: Connections['query']
  /** Asks the macros over the heads alone; undefined in a snapshot that has none. */
  readonly queryHeads: Connections['query'] | undefined
  /** A session of its own for the macros over some apps, see contenders-setup.sql. */
  readonly amongContenders: Connections['inSession']
}

export interface Snapshot extends ReadableSnapshot {
  /** The same over a few connections of its own: what anybody may ask for does not hold up who has a key. */
  readonly forPages: ReadableSnapshot
  /** Closes the file, as soon as the queries that still run are interrupted. */
  close(): Promise<void>
}

/** Few, since anybody may ask for a page; one page asks six times at once. */
const PAGE_LIMITS: ConnectionLimits = { ...CONNECTION_LIMITS, connections: 1, waiting: 60 }

const AMONG_CONTENDERS = readFileSync(new URL('contenders-setup.sql', import.meta.url), 'utf8')
const HEADS = `
  SELECT table_name FROM duckdb_tables()
  WHERE schema_name = 'fast' AND table_name = 'apps' AND estimated_size > 0`
const META = `
  SELECT epoch_ms(as_of) AS as_of, CAST(data_through AS VARCHAR) AS data_through,
    CAST(first_day AS VARCHAR) AS first_day, attribution,
    (SELECT CAST(estimated_size AS DOUBLE) FROM duckdb_tables()
      WHERE schema_name = 'main' AND table_name = 'app_daily')
      / (1 + date_diff('day', first_day, data_through)) AS rows_per_day
  FROM meta`
const COVERAGE = `
  SELECT c.status, list(CAST(c.day AS VARCHAR) ORDER BY c.day)::JSON::VARCHAR AS days
  FROM coverage AS c, meta AS m
  WHERE c.day BETWEEN m.first_day AND m.data_through
  GROUP BY c.status`

const metaSchema = z.tuple([
  z.object({
    as_of: z.bigint(),
    data_through: daySchema,
    first_day: daySchema,
    attribution: z.string(),
    rows_per_day: z.number(),
  }),
])
const coverageSchema = z.array(z.object({ status: z.enum(COVERAGE_STATUSES), days: z.string() }))
const daysSchema = z.array(daySchema)

/**
 * DuckDB's memory for a snapshot, pages of its file included. Nothing is spilled: by itself DuckDB would do that beside
 * the file, into the folder of the snapshot.
 */
const MEMORY = { memory_limit: '2GB', temp_directory: '' }

/** The folder `pointer` leads to now, with every link resolved; undefined when there is none yet. */
export function snapshotFolder(pointer: string): string | undefined {
  return unlessAbsent(() => realpathSync(pointer))
}

/**
 * Opens the snapshot in `folder`, which must be its real path: DuckDB knows a file by its name, and a name
 * that passes through the pointer would stand for another file tomorrow.
 * @throws when the file is missing, damaged, not a snapshot, or written to since it was published.
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
  const readers = openReaders(instance, CONNECTION_LIMITS)
  const pageReaders = openReaders(instance, PAGE_LIMITS)
  const close = async () => {
    await Promise.all([readers.close(), pageReaders.close()])
    instance.closeSync()
  }
  try {
    const { query } = readers.whole
    await query("SET GLOBAL TimeZone = 'UTC'", {})
    const hasHeads = (await query(HEADS, {})).length > 0
    const facts = await readFacts(query)
    const readBy = ({ whole, heads, contenders }: Readers) => ({
      ...facts,
      query: whole.query,
      queryHeads: hasHeads ? heads.query : undefined,
      amongContenders: contenders.inSession,
    })
    return { ...readBy(readers), forPages: readBy(pageReaders), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Whoever opens the file to write may leave a log of changes beside it, which DuckDB would read as a part of it. */
function refuseWritten(path: string): void {
  if (!existsSync(`${path}.wal`)) return
  throw new Error(
    `${path} was opened to write after it was published. Remove ${path}.wal, which holds the changes, and open ` +
      'published files read-only',
  )
}

interface Readers {
  readonly whole: Connections
  readonly heads: Connections
  readonly contenders: Connections
  close(): Promise<void>
}

/** Connections of each kind that a ranking is read with. */
function openReaders(instance: DuckDBInstance, limits: ConnectionLimits): Readers {
  const whole = openConnections(instance, "SET search_path = 'main'", limits)
  const heads = openConnections(instance, "SET search_path = 'fast,main'", limits)
  const contenders = openConnections(instance, AMONG_CONTENDERS, limits)
  return {
    whole,
    heads,
    contenders,
    close: async () => {
      await Promise.all([whole, heads, contenders].map((connections) => connections.close()))
    },
  }
}

async function readFacts(
  query: Connections['query'],
): Promise<SnapshotFacts & Pick<ReadableSnapshot, 'rowsPerDay'>> {
  const [meta] = metaSchema.parse(await query(META, {}))
  const days = daysByStatus(coverageSchema.parse(await query(COVERAGE, {})))
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
    attribution: meta.attribution,
    rowsPerDay: meta.rows_per_day,
  }
}

function daysByStatus(rows: z.infer<typeof coverageSchema>): (status: CoverageStatus) => readonly string[] {
  const byStatus = new Map(rows.map(({ status, days }) => [status, daysSchema.parse(JSON.parse(days))]))
  return (status) => byStatus.get(status) ?? []
}
