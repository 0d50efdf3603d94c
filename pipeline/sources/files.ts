/**
 * Usage counted from the files of the drop folder by DuckDB. Parquet is counted where it lies; text and Arrow
 * files are staged first. Either way the rows appear in the temporary view `incoming`, one column per input
 * column, with file, row, fault and payload beside them, and the SQL under sql/load/ does the rest.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { DataError, isShortage, messageOf } from '../errors.ts'
import { execute, readRow, setVariables } from '../duckdb/statements.ts'
import { USAGE_COLUMNS } from './columns.ts'
import { fingerprintOf, listUsageDays } from './drop-folder.ts'
import type { RawFile, UsageDay } from './drop-folder.ts'
import { readParquet, readThrough } from './parquet-file.ts'
import type { Proof } from './parquet-file.ts'
import type { UsageSource } from './source.ts'
import { createStagingTable, stageFile } from './staging.ts'

/** How DuckDB words that an app_id has no place in the array of count-proven.sql. */
const OUTSIDE_OF_ARRAY = /Perfect hash aggregate/

const suspicionRow = z.object({ suspicious: z.boolean() })

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
      }))
    },
    async countDay(connection, { day }) {
      const files = found.get(day)?.files ?? []
      try {
        await countFiles(connection, files)
      } catch (error) {
        // DuckDB seldom names the file whose bytes it could not make sense of.
        const parquet = files.filter(({ format }) => format === 'parquet')
        if (!(error instanceof DataError) && !isShortage(error)) await readThrough(connection, parquet)
        throw error
      }
    },
    close: async () => undefined,
  }
}

async function countFiles(connection: DuckDBConnection, files: readonly RawFile[]): Promise<void> {
  const staged = files.filter(({ format }) => format !== 'parquet')
  const parquet = await readParquet(
    connection,
    files.filter(({ format }) => format === 'parquet'),
  )
  await createStagingTable(connection, USAGE_COLUMNS)
  for (const file of staged) await stageFile(connection, file, USAGE_COLUMNS)
  await execute(connection, 'load/staged.sql')
  const selects = staged.length > 0 ? ['FROM decoded', ...parquet.selects] : parquet.selects
  await connection.run(`CREATE OR REPLACE TEMP VIEW incoming AS ${selects.join(' UNION ALL ')}`)
  await setVariables(connection, { aggregated: parquet.aggregated })
  if (staged.length > 0 || parquet.proof === undefined) await execute(connection, 'load/count.sql')
  else await countProven(connection, files, parquet.proof)
  await execute(connection, 'load/rejected.sql')
  const repeats = (staged.length > 0 || parquet.identified) && (await mayRepeat(connection))
  await execute(connection, repeats ? 'load/surplus.sql' : 'load/no-surplus.sql')
}

async function countProven(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  { rows, smallSums }: Proof,
): Promise<void> {
  await setVariables(connection, { proven_rows: rows, small_sums: smallSums })
  try {
    await execute(connection, 'load/count-proven.sql')
  } catch (error) {
    if (!OUTSIDE_OF_ARRAY.test(messageOf(error))) throw error
    const names = files.map(({ name }) => name).join(', ')
    throw new DataError(
      `${names}: a footer states a least and a greatest app_id between which not all of them lie. Write the file anew`,
      { cause: error },
    )
  }
}

/** Looks for repeated request_ids by their hashes: a question that nearly every day answers with no. */
async function mayRepeat(connection: DuckDBConnection): Promise<boolean> {
  await execute(connection, 'load/suspicion.sql')
  const { suspicious } = await readRow(connection, 'load/suspected.sql', suspicionRow)
  return suspicious
}
