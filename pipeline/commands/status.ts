/** `status`: shows what is published and how the last run ended; works during a run, since it needs no warehouse. */
import { join } from 'node:path'
import { z } from 'zod'
import { daysBetween, describeRange, lastCompletedDay } from '../contract/calendar.ts'
import { LAST_RUN_FILE, readLastRun, type LastRun } from '../contract/last-run.ts'
import { withMemoryDatabase } from '../duckdb/database.ts'
import { countSchema, readRow } from '../duckdb/statements.ts'
import { JSON_OPTION } from '../program/options.ts'
import { firstFew, grouped, pluralize } from '../program/terminal.ts'
import { withPublished } from '../snapshot/attach.ts'
import { NONE_CURRENT, currentSnapshot, listSnapshots } from '../snapshot/list.ts'
import { listRetractions } from '../snapshot/records.ts'
import { command, printResult, type Dependencies } from './command.ts'

/** Most days that a line names. */
const DAYS_SHOWN = 10

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
type Facts = z.infer<typeof factsRow>

export const status = command({
  summary: 'shows what is published, times, days missing, partial or restated, and how the last run ended',
  options: JSON_OPTION,
  async work(dependencies, { json }) {
    const { config, now } = dependencies
    const { dataDir } = config
    const current = currentSnapshot(dataDir)
    const rest = {
      snapshots: listSnapshots(dataDir).length,
      retracted: listRetractions(dataDir),
      last_run: lastRunOf(dependencies),
    }
    const ending = describeLastRun(rest.last_run)
    if (current === undefined) {
      return printResult(dependencies, json, { current: null, ...rest }, [NONE_CURRENT, ...ending])
    }
    const facts = await withMemoryDatabase(config, (connection) =>
      withPublished({ connection, config }, current, 'current', () =>
        readRow(connection, 'commands.sql#status', factsRow),
      ),
    )
    const behind = Math.max(0, daysBetween(facts.data_through, lastCompletedDay(now())))
    printResult(dependencies, json, { current, ...facts, days_behind: behind, ...rest }, [
      `current       ${current}, computed at ${facts.as_of}`,
      ...describeFacts(facts, behind),
      `kept          ${pluralize(rest.snapshots, 'snapshot')}`,
      ...rest.retracted.map(({ id, reason }) => `retracted     ${id}: ${reason}`),
      ...ending,
    ])
  },
})

function lastRunOf({ config: { dataDir }, progress }: Dependencies): LastRun | null {
  try {
    return readLastRun(dataDir) ?? null
  } catch {
    progress.note(`${join(dataDir, LAST_RUN_FILE)} cannot be read and is left out; the next run replaces it`)
    return null
  }
}

/** How the last run ended; the lines of its message are indented. */
function describeLastRun(lastRun: LastRun | null): string[] {
  if (lastRun === null) return []
  const { finished_at, outcome, message } = lastRun
  const why = message === null ? '' : `: ${message.replaceAll('\n', `\n${' '.repeat(14)}`)}`
  return [`last run      ${finished_at} ${outcome}${why}`]
}

/** @param behind completed days that the data lacks. */
function describeFacts(facts: Facts, behind: number): string[] {
  const age =
    behind === 0
      ? 'up to date: the last completed day is in the data'
      : `${pluralize(behind, 'completed day')} not in the data: deliver their usage, then npm run nightly`
  const size = `${pluralize(grouped(facts.apps), 'app')}, ${pluralize(grouped(facts.app_days), 'app-day')}`
  return [
    `data          ${describeRange({ from: facts.first_day, to: facts.data_through })}: ${size}`,
    `age           ${age}`,
    `missing       ${describeDays(facts.days_missing)}`,
    `partial       ${describeDays(facts.days_partial)}`,
    `restated      ${describeDays(facts.days_restated)}`,
  ]
}

function describeDays(days: readonly string[]): string {
  if (days.length === 0) return 'no day'
  return `${pluralize(days.length, 'day')}: ${firstFew(days, DAYS_SHOWN).join(', ')}`
}
