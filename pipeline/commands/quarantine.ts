/** `quarantine`: lists rejected rows with file, row and reason, so that their producer can correct them (CONTRACT 7). */
import { z } from 'zod'
import { UsageError, parseCommandLine } from '../program/program.ts'
import { daySchema } from '../contract/calendar.ts'
import { pluralize } from '../program/terminal.ts'
import { countSchema, queryRows } from '../duckdb/statements.ts'
import { formatTable } from '../terminal/table-text.ts'
import { openWarehouseToRead } from '../duckdb/warehouse.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command, Dependencies } from './command.ts'

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
type Rejected = z.infer<typeof rejectedRow>

/** Most rows printed; --json prints them all. */
const ROWS_SHOWN = 50
const PAYLOAD_SHOWN = 120

export const quarantine: Command = {
  usage: 'quarantine [DAY] [--json]',
  summary: 'lists the rejected rows of a day, or of all days: file, row, reason and content',
  prepare(args) {
    const { values, positionals } = parseCommandLine({ args, allowPositionals: true, options: JSON_OPTION })
    const [day, ...rest] = positionals
    if (rest.length > 0) throw new UsageError('quarantine takes one day, or none')
    if (day !== undefined && !daySchema.safeParse(day).success) {
      throw new UsageError(`"${day}" is not a day: expected YYYY-MM-DD`)
    }
    return async (dependencies) => {
      const rejected = await readRejected(dependencies, day)
      printResult(dependencies, values.json, { rejected }, describe(rejected))
    }
  },
}

/** The rejected rows of one day or all days, unchanged. */
const REJECTED = `
  SELECT CAST(q.day AS VARCHAR) AS day, q.file, CAST(q.row AS VARCHAR) AS row, q.rows, q.reason, q.payload
  FROM quarantine AS q
  WHERE q.day = coalesce(CAST($day AS DATE), q.day)
  ORDER BY q.day DESC, q.file, q.row`

/** Without a warehouse nothing is rejected. */
async function readRejected({ config }: Dependencies, day: string | undefined): Promise<Rejected[]> {
  const warehouse = await openWarehouseToRead(config.dataDir, config.memory)
  if (warehouse === undefined) return []
  try {
    return await queryRows(warehouse.connection, REJECTED, rejectedRow, { day: day ?? null })
  } finally {
    warehouse.close()
  }
}

function describe(rejected: readonly Rejected[]): string[] {
  if (rejected.length === 0) return ['No row is rejected']
  const shown = rejected.slice(0, ROWS_SHOWN)
  const names = ['day', 'file', 'row', 'rows', 'reason', 'payload']
  const cells = shown.map(({ day, file, row, rows, reason, payload }) => [
    day,
    file,
    row,
    rows,
    reason,
    payload.length > PAYLOAD_SHOWN ? `${payload.slice(0, PAYLOAD_SHOWN)}…` : payload,
  ])
  const more = rejected.length - shown.length
  return [
    formatTable(names, cells),
    ...(more > 0 ? [`and ${pluralize(more, 'more row')}; --json lists them all`] : []),
  ]
}
