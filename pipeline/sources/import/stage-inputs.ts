/** Stages the rows of imported files in the table `staged`, unchanged or mapped. */
import type { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api'
import { DataError } from '../../errors.ts'
import { withAppender } from '../../duckdb/appender.ts'
import { USAGE_COLUMNS, allColumns } from '../columns.ts'
import type { Columns } from '../columns.ts'
import { withExactTimes } from '../formats/parquet-times.ts'
import { createStagingTable, stageFiles } from '../staging.ts'
import { readDocuments } from './documents.ts'
import type { Input } from './input.ts'
import { mapRow } from './map-row.ts'
import { isRecord } from './usage-map.ts'
import { USAGE_FIELDS } from './usage-fields.ts'
import type { UsageRow } from './usage-fields.ts'
import type { UsageMap } from './usage-map.ts'

/** Columns that an import copies. */
const IMPORTED_COLUMNS: Columns = USAGE_COLUMNS

/** Without a map, a JSON document has the columns of raw usage. */
const PLAIN_MAP: UsageMap = { columns: Object.fromEntries(USAGE_FIELDS.map((field) => [field, field])) }

/**
 * Creates the table `staged` and fills it.
 * @returns how many rows are not generations, according to the map.
 * @throws DataError with the file that cannot be read.
 */
export async function stageInputs(
  connection: DuckDBConnection,
  inputs: readonly Input[],
  map: UsageMap | undefined,
): Promise<number> {
  await createStagingTable(connection, IMPORTED_COLUMNS)
  let leftOut = 0
  for (const input of inputs) {
    if (map === undefined && !input.isWholeJson) await stageFiles(connection, [input.file], IMPORTED_COLUMNS)
    else {
      leftOut += await withExactTimes(connection, [input.file], ([file = input.file]) =>
        stageMapped(connection, { ...input, file }, map ?? PLAIN_MAP),
      )
    }
  }
  return leftOut
}

async function stageMapped(connection: DuckDBConnection, input: Input, map: UsageMap): Promise<number> {
  let leftOut = 0
  await withAppender(connection, 'staged', async (appender) => {
    for await (const { row, value } of readDocuments(connection, input, map)) {
      for (const item of map.rows?.(value) ?? [value]) {
        const usage = mapRow(item, map)
        if (usage === undefined) leftOut += 1
        else {
          if ((usage.ts ?? null) === null) throw withoutTime(`${input.file.name}, row ${row}`, item, map)
          append(appender, { file: input.file.name, row }, usage)
        }
      }
    }
  })
  return leftOut
}

/** The likely reason is a file of another producer. */
function withoutTime(place: string, row: unknown, map: UsageMap): DataError {
  const paths = [map.columns.ts].flat().filter((path) => typeof path === 'string')
  const keys = isRecord(row) ? Object.keys(row).join(', ') : 'none'
  return new DataError(
    `${place} has no time: expected it under ${paths.join(' or ')}; the keys there are ${keys}. ` +
      'Nothing of the file is imported; give the right map with --from or --map',
  )
}

type Place = { readonly file: string; readonly row: number }

function append(appender: DuckDBAppender, { file, row }: Place, usage: UsageRow): void {
  appender.appendVarchar(file)
  appender.appendBigInt(BigInt(row))
  appender.appendBigInt(1n)
  appender.appendNull()
  appender.appendNull()
  const values: Readonly<Record<string, string | null | undefined>> = usage
  for (const column of allColumns(IMPORTED_COLUMNS)) {
    const value = values[column] ?? null
    if (value === null) appender.appendNull()
    else appender.appendVarchar(value)
  }
  appender.endRow()
}
