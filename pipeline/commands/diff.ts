/** `diff`: compares two snapshots. */
import { z } from 'zod'
import { UsageError, parseCommandLine } from '../program/program.ts'
import { grouped, pluralize } from '../program/terminal.ts'
import { withSnapshots } from '../snapshot/reader.ts'
import { countSchema, readRows } from '../duckdb/statements.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command, Dependencies } from './command.ts'

const totalsRow = z.object({
  side: z.enum(['before', 'after']),
  data_through: z.string(),
  apps: countSchema,
  app_days: countSchema,
  total_requests: z.string(),
  total_tokens: z.string(),
})
type Totals = z.infer<typeof totalsRow>
const appRow = z.object({
  change: z.enum(['new', 'gone', 'renamed']),
  app_id: z.string(),
  app_name: z.string(),
})
const dayRow = z.object({
  day: z.string(),
  tokens_before: z.string(),
  tokens_after: z.string(),
  apps_changed: countSchema,
  /** The cause that the later snapshot gives. */
  causes: z.array(z.string()),
})
const rankRow = z.object({
  sort: z.string(),
  app_id: z.string(),
  app_name: z.string(),
  rank_before: countSchema.nullable(),
  rank_after: countSchema.nullable(),
})

/** Most lines of a kind; --json prints them all. */
const LINES_SHOWN = 20

export const diff: Command = {
  usage: 'diff A B [--json]',
  summary:
    'compares two snapshots: totals, days, apps that are new or gone, ranks that moved in the 30-day lists',
  prepare(args) {
    const { values, positionals } = parseCommandLine({ args, allowPositionals: true, options: JSON_OPTION })
    const [before, after, ...rest] = positionals
    if (before === undefined || after === undefined || rest.length > 0) {
      throw new UsageError('diff takes two snapshots, such as diff 20261119T020000Z 20261120T020000Z')
    }
    return (dependencies) => printDiff(dependencies, { before, after }, values.json)
  },
}

async function printDiff(
  dependencies: Dependencies,
  pair: { before: string; after: string },
  json: boolean,
): Promise<void> {
  const result = await withSnapshots(dependencies.config, pair, async (connection) => ({
    ...pair,
    totals: await readRows(connection, 'diff.sql#totals', totalsRow),
    days: await readRows(connection, 'diff.sql#days', dayRow),
    apps: await readRows(connection, 'diff.sql#apps', appRow),
    ranks: await readRows(connection, 'diff.sql#ranks', rankRow),
  }))
  printResult(dependencies, json, result, [
    ...result.totals.map((side) => describeSide(side, result.totals)),
    ...section(
      'days that changed',
      result.days.map(
        ({ day, tokens_before, tokens_after, apps_changed, causes }) =>
          `${day}: ${grouped(tokens_before)} -> ${grouped(tokens_after)} tokens${change(tokens_before, tokens_after)}, ${pluralize(apps_changed, 'app')}${causes.length === 0 ? '' : ` (${causes.join(', ')})`}`,
      ),
    ),
    ...section(
      'apps (change, app_id, app_name)',
      result.apps.map((app) => `${app.change.padEnd(8)} ${app.app_id} ${app.app_name}`),
    ),
    ...section(
      'ranks in the 30-day lists (sort, before -> after, app_id, app_name)',
      result.ranks.map(
        (app) =>
          `${app.sort.padEnd(8)} ${app.rank_before ?? '-'} -> ${app.rank_after ?? '-'} ${app.app_id} ${app.app_name}`,
      ),
    ),
  ])
}

function describeSide(side: Totals, [before]: readonly Totals[]): string {
  const changed = (name: 'total_requests' | 'total_tokens') =>
    side.side === 'after' && before !== undefined ? change(before[name], side[name]) : ''
  return (
    `${side.side.padEnd(8)} through ${side.data_through}: ${pluralize(grouped(side.apps), 'app')}, ${pluralize(grouped(side.app_days), 'app-day')}, ` +
    `${pluralize(grouped(side.total_requests), 'request')}${changed('total_requests')}, ` +
    `${pluralize(grouped(side.total_tokens), 'token')}${changed('total_tokens')}`
  )
}

/** Change of a figure in percent; empty if it did not change, or was 0. */
function change(before: string, after: string): string {
  if (before === after || before === '0') return ''
  const hundredths = Number(((BigInt(after) - BigInt(before)) * 10_000n) / BigInt(before))
  return ` (${hundredths < 0 ? '' : '+'}${(hundredths / 100).toFixed(2)}%)`
}

function section(title: string, lines: readonly string[]): string[] {
  const shown = lines.slice(0, LINES_SHOWN).map((line) => `  ${line}`)
  const more =
    lines.length > LINES_SHOWN ? [`  and ${lines.length - LINES_SHOWN} more; --json lists them all`] : []
  return [`${title}: ${lines.length}`, ...shown, ...more]
}
