/** `quarantine`: lists rejected rows with file, row and reason, so that their producer can correct them (CONTRACT 7). */
import { z } from 'zod'
import { daySchema } from '../contract/calendar.ts'
import { countSchema, readRows } from '../duckdb/statements.ts'
import { readWarehouse } from '../duckdb/warehouse.ts'
import { JSON_OPTION } from '../program/options.ts'
import { UsageError } from '../program/program.ts'
import { formatTable, pluralize } from '../program/terminal.ts'
import { command, printResult } from './command.ts'

const rejectedRow = z.object({
  day: z.string(),
  file: z.string(),
  /** Row in the file, from 1. */
  row: z.string(),
  /** Number of rows in the file with the same violation. */
  rows: countSchema,
  reason: z.string(),
  payload: z.string(),
})

/** Most rows printed; --json prints them all. */
const ROWS_SHOWN = 50
const PAYLOAD_SHOWN = 120

export const quarantine = command({
  summary: 'lists the rejected rows of a day, or of all days: file, row, reason and content',
  takes: '[DAY]',
  options: JSON_OPTION,
  async work(dependencies, { json }, [day]) {
    if (day !== undefined && !daySchema.safeParse(day).success)
      throw new UsageError(`"${day}" is not a day: expected YYYY-MM-DD`)
    const rejected = await readWarehouse(dependencies.config, (connection) =>
      readRows(connection, 'commands.sql#quarantine', rejectedRow, { day: day ?? null }),
    )
    // Without a warehouse nothing is rejected.
    printResult(dependencies, json, { rejected: rejected ?? [] }, describe(rejected ?? []))
  },
})

function describe(rejected: readonly z.infer<typeof rejectedRow>[]): string[] {
  if (rejected.length === 0) return ['No row is rejected']
  const cells = rejected
    .slice(0, ROWS_SHOWN)
    .map(({ day, file, row, rows, reason, payload }) => [day, file, row, rows, reason, shortened(payload)])
  const more = rejected.length - cells.length
  return [
    formatTable(Object.keys(rejectedRow.shape), cells),
    ...(more > 0 ? [`and ${pluralize(more, 'more row')}; --json lists them all`] : []),
  ]
}

function shortened(payload: string): string {
  return payload.length > PAYLOAD_SHOWN ? `${payload.slice(0, PAYLOAD_SHOWN)}…` : payload
}
