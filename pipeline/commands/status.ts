/** `status`: shows what is published and how the last run ended; works during a run, since it needs no warehouse. */
import { join } from 'node:path'
import { z } from 'zod'
import { parseCommandLine } from '../program/program.ts'
import { daysBetween, describeRange, lastCompletedDay, rangesOf } from '../contract/calendar.ts'
import { LAST_RUN_FILE, readLastRun } from '../contract/last-run.ts'
import type { LastRun } from '../contract/last-run.ts'
import { grouped, pluralize } from '../program/terminal.ts'
import { findCurrent, listSnapshots } from '../snapshot/list.ts'
import { listRetractions, unreadableRecords } from '../snapshot/records.ts'
import { withSnapshot } from '../snapshot/attach.ts'
import { countSchema, readRow } from '../duckdb/statements.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command, Dependencies } from './command.ts'

const factsRow = z.object({
  as_of: z.string(),
  first_day: z.string(),
  data_through: z.string(),
  apps: countSchema,
  app_days: countSchema,
  days_missing: z.array(z.string()),
  days_partial: z.array(z.string()),
  days_restated: z.array(z.string()),
})

export const status: Command = {
  usage: 'status [--json]',
  summary: 'shows what is published, times, days missing, partial or restated, and how the last run ended',
  prepare(args) {
    const { values } = parseCommandLine({ args, options: JSON_OPTION })
    return (dependencies) => printStatus(dependencies, values.json)
  },
}

async function printStatus(dependencies: Dependencies, json: boolean): Promise<void> {
  const { dataDir } = dependencies.config
  const snapshots = listSnapshots(dataDir)
  const found = findCurrent(dataDir)
  const rest = {
    snapshots: snapshots.length,
    retracted: listRetractions(dataDir),
    unreadable: unreadableRecords(dataDir),
    last_run: lastRunOf(dependencies),
  }
  if ('reason' in found) {
    printResult(dependencies, json, { current: null, ...rest }, [
      found.reason,
      ...unreadable(rest.unreadable),
      ...ended(rest.last_run),
    ])
    return
  }
  const current = found.id
  const facts = await withSnapshot(dependencies.config, { id: current, name: 'current' }, (connection) =>
    readRow(connection, 'commands.sql#status', factsRow),
  )
  const behind = daysBehind(facts.data_through, dependencies.now())
  printResult(dependencies, json, { current, ...facts, days_behind: behind, ...rest }, [
    `current       ${current}, computed at ${facts.as_of}`,
    `data          ${describeRange({ from: facts.first_day, to: facts.data_through })}: ${pluralize(grouped(facts.apps), 'app')}, ${pluralize(grouped(facts.app_days), 'app-day')}`,
    `age           ${age(behind)}`,
    `missing       ${listed(facts.days_missing)}`,
    `partial       ${listed(facts.days_partial)}`,
    `restated      ${listed(facts.days_restated)}`,
    `kept          ${pluralize(rest.snapshots, 'snapshot')}`,
    ...rest.retracted.map(({ id, reason }) => `retracted     ${id}: ${reason}`),
    ...unreadable(rest.unreadable),
    ...ended(rest.last_run),
  ])
}

function lastRunOf({ config: { dataDir }, progress }: Dependencies): LastRun | null {
  try {
    return readLastRun(dataDir) ?? null
  } catch {
    progress.note(`${join(dataDir, LAST_RUN_FILE)} cannot be read and is left out; the next run replaces it`)
    return null
  }
}

function unreadable(paths: readonly string[]): string[] {
  return paths.map((path) => `unreadable    ${path}; restore it from a backup`)
}

/** How the last run ended; the lines of its message are indented. */
function ended(lastRun: LastRun | null): string[] {
  if (lastRun === null) return []
  const { finished_at, outcome, message } = lastRun
  const why = message === null ? '' : `: ${message.replaceAll('\n', `\n${' '.repeat(14)}`)}`
  return [`last run      ${finished_at} ${outcome}${why}`]
}

/** How many completed days the data lacks. */
function daysBehind(dataThrough: string, now: Date): number {
  return Math.max(0, daysBetween(dataThrough, lastCompletedDay(now)))
}

function age(behind: number): string {
  if (behind === 0) return 'up to date: the last completed day is in the data'
  return `${pluralize(behind, 'completed day')} not in the data: deliver their usage, then npm run nightly`
}

function listed(days: readonly string[]): string {
  if (days.length === 0) return 'no day'
  const spans = rangesOf(days).map(describeRange).join(', ')
  return days.length === 1 ? spans : `${days.length} days: ${spans}`
}
