/**
 * Usage counted from the files of the drop folder by DuckDB. Parquet is counted where it lies; text and Arrow files are
 * staged first. Either way the rows appear in the temporary view `incoming`, one column per input column, with day, file,
 * row, fault and payload beside them, and the SQL under sql/load/ does the rest.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { DataError, isShortage, messageOf } from '../errors.ts'
import { execute, queryRows, setVariables } from '../duckdb/statements.ts'
import { allColumns, USAGE_COLUMNS } from './columns.ts'
import type { Columns } from './columns.ts'
import { fingerprintOf, listUsageDays } from './drop-folder.ts'
import type { RawFile, UsageDay } from './drop-folder.ts'
import { proveByFooters, readParquet, readThrough } from './formats/parquet-file.ts'
import type { ParquetReading, Proof } from './formats/parquet-file.ts'
import { withExactTimes } from './formats/parquet-times.ts'
import { nameApps } from './named-apps.ts'
import { incomingColumns } from './readings.ts'
import type { UsageSource } from './usage-source.ts'
import { createStagingTable, stageFiles } from './staging.ts'
import { defineValidation } from './validation.ts'

const namedRow = z.object({ named: z.boolean() })

const ARE_MODELS_NAMED = 'SELECT count(*) > 0 AS named FROM models'

/**
 * Sums of a column of valid rows. In a DOUBLE, which holds small sums exactly in whatever order they are added up, a sum
 * takes half the place of a HUGEINT, and most of the time goes into fetching places.
 */
const SMALL_SUM = 'CAST(sum(CAST(figure AS DOUBLE)) AS BIGINT)'
const LARGE_SUM = 'CAST(sum(figure) AS HUGEINT)'

const ARE_NAMED = 'SELECT count(app) > 0 AS named FROM staged'

/** The texts by which rows name their apps, those that were seen first before the others. */
const APP_TEXTS =
  "SELECT app FROM incoming_by_name WHERE app <> '' GROUP BY app ORDER BY min(ts) NULLS LAST, app"

const textRow = z.object({ app: z.string() })

/** How DuckDB words that an app_id has no place in the array of count-valid.sql. */
const OUTSIDE_OF_ARRAY = /Perfect hash aggregate/

/** How DuckDB words that a text of a Parquet file is not UTF-8, or in an encoding that it does not know. */
const UNREADABLE = /Invalid string encoding|BYTE_STREAM_SPLIT/

/** Where the day stands in the name of a file, usage/date=YYYY-MM-DD/... */
const DAY_OF_FILE = 'CAST(substr(file, 12, 10) AS DATE)'

/** The drop folder as a source of usage. */
export function openDropFolder(rawFolder: string): UsageSource {
  const found = new Map<string, UsageDay>()
  return {
    async listDays() {
      found.clear()
      for (const usage of listUsageDays(rawFolder)) found.set(usage.day, usage)
      return [...found.values()].map(({ day, files }) => ({
        day,
        fingerprint: fingerprintOf(files),
        parts: files.map(({ name }) => name),
        bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      }))
    },
    async countDays(connection, days) {
      const files = days.flatMap(({ day }) => found.get(day)?.files ?? [])
      const [first, ...others] = days
      // One day alone is a constant, by which nothing needs to be grouped.
      const day = first !== undefined && others.length === 0 ? `DATE '${first.day}'` : DAY_OF_FILE
      const staged = files.filter(({ format }) => format !== 'parquet')
      const parquet = files.filter(({ format }) => format === 'parquet')
      const batch = { staged, parquet, day, isOne: others.length === 0 }
      await defineValidation(connection)
      try {
        await withExactTimes(connection, batch.parquet, async (exact) => {
          const copied = { ...batch, parquet: exact }
          await countFiles(connection, copied, USAGE_COLUMNS).catch(async (error: unknown) => {
            // Several days are counted one by one then, so that none loses what is told on the others.
            if (!UNREADABLE.test(messageOf(error)) || !batch.isOne) throw error
            // What describes a request decides nothing: where it cannot be read, it is unknown.
            await countFiles(connection, copied, { ...USAGE_COLUMNS, descriptive: [] })
          })
        })
      } catch (error) {
        // DuckDB seldom names the file whose bytes it could not make sense of.
        if (!(error instanceof DataError) && !isShortage(error)) await readThrough(connection, batch.parquet)
        throw error
      }
    },
    close: async () => undefined,
  }
}

/** Files that are counted together. */
type Batch = {
  readonly staged: readonly RawFile[]
  readonly parquet: readonly RawFile[]
  /** An expression that gives the day of a row's folder. */
  readonly day: string
  readonly isOne: boolean
}

async function countFiles(
  connection: DuckDBConnection,
  { staged, parquet, day, isOne }: Batch,
  parquetColumns: Columns,
): Promise<void> {
  const reading = await readParquet(connection, parquet, { day, columns: parquetColumns })
  await createStagingTable(connection, USAGE_COLUMNS)
  await stageFiles(connection, staged, USAGE_COLUMNS)
  const isNamed = (staged.length > 0 && (await areStagedNamed(connection))) || reading.isNamed
  const selects = staged.length > 0 ? [selectStaged(day), ...reading.selects] : reading.selects
  const rows = selects.join(' UNION ALL ')
  if (isNamed) await nameIncoming(connection, rows)
  else await connection.run(`CREATE OR REPLACE TEMP VIEW incoming AS ${rows}`)
  await execute(connection, 'load/validated.sql')
  await execute(connection, 'load.sql#provider-counts')
  const isProvable = isOne && staged.length === 0 && reading.isProvable
  const proof = isProvable ? await proveByFooters(connection, parquet) : undefined
  if (proof === undefined) await execute(connection, 'load/count.sql')
  else await countValid(connection, parquet, { ...proof, ...reading })
  // Where no row tells its provider, and none is without tokens, there is nothing to say of providers.
  if (proof === undefined || reading.tellsProvider) await execute(connection, 'load/count-providers.sql')
}

/** Makes the table `models` of those that rows name. Resolves to whether there are any. */
async function findModels(connection: DuckDBConnection): Promise<boolean> {
  await execute(connection, 'load.sql#models')
  const [models] = await queryRows(connection, ARE_MODELS_NAMED, namedRow)
  return models?.named === true
}

/** Whether a staged row names its app, or says that it names none. */
async function areStagedNamed(connection: DuckDBConnection): Promise<boolean> {
  const [staged] = await queryRows(connection, ARE_NAMED, namedRow)
  return staged?.named === true
}

/** Makes the view `incoming` of rows that name their apps, who get their ids by it. */
async function nameIncoming(connection: DuckDBConnection, rows: string): Promise<void> {
  await connection.run(`CREATE OR REPLACE TEMP VIEW incoming_by_name AS ${rows}`)
  const texts = await queryRows(connection, APP_TEXTS, textRow)
  await nameApps(
    connection,
    texts.map(({ app }) => app),
  )
  await execute(connection, 'load/named.sql')
  await execute(connection, 'load/app-names.sql')
}

/** The staged rows with their texts decoded; a row without its own bytes is kept as an object of these texts. */
function selectStaged(day: string): string {
  const types = new Map(allColumns(USAGE_COLUMNS).map((name) => [name, { name, type: 'VARCHAR' }]))
  const app = 'CASE WHEN app_id IS NULL THEN app END'
  const columns = incomingColumns(types, { fault: 'fault', payload: 'payload', app })
  return `SELECT ${day} AS day, file, row, lines, ${columns.join(', ')} FROM staged`
}

async function countValid(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  { rows, smallSums, aggregated, tellsModel, tellsParts }: Proof & ParquetReading,
): Promise<void> {
  await setVariables(connection, { valid_rows: rows, aggregated, tells_parts: tellsParts })
  await connection.run(`CREATE OR REPLACE TEMP MACRO sum_of(figure) AS ${smallSums ? SMALL_SUM : LARGE_SUM}`)
  const isByModel = tellsModel && (await findModels(connection))
  try {
    await execute(
      connection,
      isByModel || tellsParts ? 'load/count-valid-models.sql' : 'load/count-valid.sql',
    )
  } catch (error) {
    if (!OUTSIDE_OF_ARRAY.test(messageOf(error))) throw error
    const names = files.map(({ name }) => name).join(', ')
    throw new DataError(
      `${names}: a footer states a least and a greatest app_id between which not all of them lie. Write the file anew`,
      { cause: error },
    )
  }
}
