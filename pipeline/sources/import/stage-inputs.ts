/** Stages the rows of imported files in the table `staged`, unchanged or mapped, on the readers of the drop folder. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { DataError, messageOf } from '../../errors.ts'
import { withAppender } from '../../duckdb/statements.ts'
import { USAGE_COLUMNS } from '../columns.ts'
import type { Columns } from '../columns.ts'
import { isRecord, readWholeJson } from '../formats/json.ts'
import type { Document } from '../formats/json.ts'
import { appendRow, createStagingTable, readDocuments, stageFiles } from '../staging.ts'
import type { Input } from './input.ts'
import { mapRow } from './map-row.ts'
import { USAGE_FIELDS } from './usage-map.ts'
import type { UsageMap, UsageRow } from './usage-map.ts'

/** A mapped file may have any columns. */
const ANY_COLUMNS: Columns = { required: [], optional: [] }

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
  await createStagingTable(connection, USAGE_COLUMNS)
  let skipped = 0
  for (const input of inputs) {
    if (map === undefined && !input.isWholeJson) await stageFiles(connection, [input.file], USAGE_COLUMNS)
    else skipped += await stageMapped(connection, input, map ?? PLAIN_MAP)
  }
  return skipped
}

async function stageMapped(connection: DuckDBConnection, input: Input, map: UsageMap): Promise<number> {
  let skipped = 0
  await withAppender(connection, 'staged', async (appender) => {
    const { file, isWholeJson } = input
    const documents = isWholeJson ? readWholeJson(file) : readDocuments(connection, file, ANY_COLUMNS)
    for await (const document of documents) {
      for (const usage of mapDocument(input.file.name, document, map)) {
        if (usage === undefined) skipped += 1
        else appendRow(appender, input.file.name, { row: document.row }, valuesOf(usage))
      }
    }
  })
  return skipped
}

/** @throws DataError with file and row of a document that is none, that the map cannot read, or that has no time. */
function mapDocument(name: string, { row, value, fault }: Document, map: UsageMap): (UsageRow | undefined)[] {
  const place = `${name}, row ${row}`
  if (fault !== undefined) throw new DataError(`${place}: ${fault}. Nothing of the file is imported`)
  return [...(map.rows?.(value) ?? [value])].map((item) => {
    const usage = mapItem(place, item, map)
    if (usage !== undefined && (usage.ts ?? null) === null) throw withoutTime(place, item, map)
    return usage
  })
}

function mapItem(place: string, item: unknown, map: UsageMap): UsageRow | undefined {
  try {
    return mapRow(item, map)
  } catch (error) {
    throw new DataError(`${place}: ${messageOf(error)}. Nothing of the file is imported`, { cause: error })
  }
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

/** The values in the order of the staging table. */
function valuesOf(usage: UsageRow): (string | null)[] {
  const values: Readonly<Record<string, string | null | undefined>> = usage
  return [...USAGE_COLUMNS.required, ...USAGE_COLUMNS.optional, ...USAGE_COLUMNS.descriptive].map(
    (column) => values[column] ?? null,
  )
}
