/** One published snapshot, opened for reading: its facts, read once, and its SQL. */
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance, VARCHAR, type DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import {
  COVERAGE_STATUSES,
  daySchema,
  SNAPSHOT_FILE,
  snapshotId,
  wholeSeconds,
  type CoverageStatus,
} from '../../pipeline/contract.ts'

type SqlValue = string | number | null
type SqlRow = Readonly<Record<string, unknown>>

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

export interface Snapshot extends SnapshotFacts {
  /** Runs one statement with `values` bound by name to `$name`. */
  query(sql: string, values: Readonly<Record<string, SqlValue>>): Promise<readonly SqlRow[]>
  /** Closes the file; queries must have ended. */
  close(): void
}

const META = `
  SELECT epoch_ms(as_of) AS as_of, CAST(data_through AS VARCHAR) AS data_through,
    CAST(first_day AS VARCHAR) AS first_day, attribution
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
  }),
])
const coverageSchema = z.array(z.object({ status: z.enum(COVERAGE_STATUSES), days: z.string() }))
const daysSchema = z.array(daySchema)

/** The folder `pointer` leads to now, with every link resolved; undefined when there is none yet. */
export function snapshotFolder(pointer: string): string | undefined {
  try {
    return realpathSync(pointer)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Opens the snapshot in `folder`, which must be its real path: DuckDB knows a file by its name, and a name
 * that passes through the pointer would stand for another file tomorrow.
 * @throws when the file is missing, damaged or not a snapshot.
 */
export async function openSnapshot(folder: string): Promise<Snapshot> {
  const instance = await DuckDBInstance.create(join(folder, SNAPSHOT_FILE), {
    access_mode: 'READ_ONLY',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    enable_external_access: 'false',
  })
  try {
    await onConnection(instance, (connection) => connection.run("SET GLOBAL TimeZone = 'UTC'"))
    const query: Snapshot['query'] = (sql, values) =>
      onConnection(instance, (connection) => readRows(connection, sql, values))
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
      query,
      close: () => instance.closeSync(),
    }
  } catch (error) {
    instance.closeSync()
    throw error
  }
}

function daysByStatus(rows: z.infer<typeof coverageSchema>): (status: CoverageStatus) => readonly string[] {
  const byStatus = new Map(rows.map(({ status, days }) => [status, daysSchema.parse(JSON.parse(days))]))
  return (status) => byStatus.get(status) ?? []
}

// A connection runs one query at a time, so each query gets its own; opening one is cheap beside the query.
async function onConnection<Result>(
  instance: DuckDBInstance,
  work: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const connection = await instance.connect()
  try {
    return await work(connection)
  } finally {
    connection.closeSync()
  }
}

async function readRows(
  connection: DuckDBConnection,
  sql: string,
  values: Readonly<Record<string, SqlValue>>,
): Promise<readonly SqlRow[]> {
  // A bare null has no type, and a macro's argument needs one.
  const nulls = Object.keys(values).filter((name) => values[name] === null)
  const types = Object.fromEntries(nulls.map((name) => [name, VARCHAR]))
  const reader = await connection.runAndReadAll(sql, { ...values }, types)
  return reader.getRowObjectsJS()
}
