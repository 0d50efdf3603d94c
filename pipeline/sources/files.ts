/**
 * Counts usage from the files of the drop folder with DuckDB. Parquet is counted in place; text and Arrow files are staged
 * first. Both give the temporary view `incoming`, with the input columns and day, file, row, fault and payload, for the SQL
 * under sql/load/.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { DataError, isShortage, messageOf } from '../errors.ts'
import { execute, queryRows, readRows, setVariables } from '../duckdb/statements.ts'
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
 * Sums of a column of valid rows. A DOUBLE holds small sums exactly, in any order of addition, and takes half the space of a
 * HUGEINT; most of the time is spent on memory access.
 */
const SMALL_SUM = 'CAST(sum(CAST(figure AS DOUBLE)) AS BIGINT)'
const LARGE_SUM = 'CAST(sum(figure) AS HUGEINT)'

const ARE_NAMED = 'SELECT count(app) > 0 AS named FROM staged'

const textRow = z.object({ app: z.string() })

/** DuckDB's words for an app_id outside the array of count-valid.sql. */
const OUTSIDE_OF_ARRAY = /Perfect hash aggregate/

/** DuckDB's words for a text of a Parquet file that is not UTF-8, or in an unknown encoding. */
const UNREADABLE = /Invalid string encoding|BYTE_STREAM_SPLIT/

/** The day in the name of a file, usage/date=YYYY-MM-DD/... */
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
      // A single day is a constant, which saves grouping by it.
      const day = first !== undefined && others.length === 0 ? `DATE '${first.day}'` : DAY_OF_FILE
      const staged = files.filter(({ format }) => format !== 'parquet')
      const parquet = files.filter(({ format }) => format === 'parquet')
      const batch = { staged, parquet, day, isOne: others.length === 0 }
      await defineValidation(connection)
      try {
        await withExactTimes(connection, batch.parquet, async (exact) => {
          const copied = { ...batch, parquet: exact }
          await countFiles(connection, copied, USAGE_COLUMNS).catch(async (error: unknown) => {
            // Several days are then counted one by one, so that the fault of one does not reduce the others.
            if (!UNREADABLE.test(messageOf(error)) || !batch.isOne) throw error
            // A descriptive column that cannot be read counts as unknown.
            await countFiles(connection, copied, { ...USAGE_COLUMNS, descriptive: [] })
          })
        })
      } catch (error) {
        // DuckDB seldom names the file with the unreadable bytes.
        if (!(error instanceof DataError) && !isShortage(error)) await readThrough(connection, batch.parquet)
        throw error
      }
    },
    close: async () => undefined,
  }
}

type Batch = {
  readonly staged: readonly RawFile[]
  readonly parquet: readonly RawFile[]
  /** An expression for the day of a row's folder. */
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
  // If no row has a provider or unknown tokens, there is nothing to count by provider.
  if (proof === undefined || reading.tellsProvider) await execute(connection, 'load/count-providers.sql')
}

/** Creates the table `models`; resolves to whether any row names a model. */
async function findModels(connection: DuckDBConnection): Promise<boolean> {
  await execute(connection, 'load.sql#models')
  const [models] = await queryRows(connection, ARE_MODELS_NAMED, namedRow)
  return models?.named === true
}

/** Whether some staged row names its app or leaves the name empty. */
async function areStagedNamed(connection: DuckDBConnection): Promise<boolean> {
  const [staged] = await queryRows(connection, ARE_NAMED, namedRow)
  return staged?.named === true
}

/** Creates the view `incoming` for rows that name their apps, and gives these ids. */
async function nameIncoming(connection: DuckDBConnection, rows: string): Promise<void> {
  await connection.run(`CREATE OR REPLACE TEMP VIEW incoming_by_name AS ${rows}`)
  await execute(connection, 'load/named.sql#claims')
  const texts = await readRows(connection, 'load/named.sql#texts', textRow)
  await nameApps(
    connection,
    texts.map(({ app }) => app),
  )
  await execute(connection, 'load/named.sql#incoming')
  await execute(connection, 'load/named.sql#store-claims')
}

/** The staged rows, decoded; the payload of a row without its original bytes is an object of its texts. */
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
      `${names}: a footer states a range of app_id that does not contain all of them. Write the file again`,
      { cause: error },
    )
  }
}
