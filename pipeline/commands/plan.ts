/** `plan`, also `run --dry-run`: reports what a run would read and publish; writes nothing. */
import { join } from 'node:path'
import { refuseMissing } from '../config.ts'
import { lastCompletedDay, type DayRange } from '../contract/calendar.ts'
import { RAW_FOLDER } from '../contract/files.ts'
import { readWarehouse } from '../duckdb/warehouse.ts'
import { JSON_OPTION } from '../program/options.ts'
import { pluralize } from '../program/terminal.ts'
import { RANGE_OPTIONS, readRange } from '../run-options.ts'
import { currentSnapshot } from '../snapshot/list.ts'
import { listUsageDays } from '../sources/drop-folder.ts'
import { planDays, readLedger, type DayPlan } from '../stages/load.ts'
import { command, printResult, type Dependencies } from './command.ts'

export const planCommand = command({
  summary: 'shows which days a run would read and why; the same as run --dry-run',
  options: { ...RANGE_OPTIONS, ...JSON_OPTION },
  work: (dependencies, options) =>
    plan(dependencies, readRange(options, lastCompletedDay(dependencies.now())), options.json),
})

/** Prints the plan of a run at the present time, over all days or a range. */
export async function plan(
  dependencies: Dependencies,
  range: DayRange | undefined,
  json: boolean,
): Promise<void> {
  const { config, now } = dependencies
  const { dataDir } = config
  refuseMissing(config)
  const ledger = (await readWarehouse(config, readLedger)) ?? new Map()
  const days = planDays(listUsageDays(join(dataDir, RAW_FOLDER)), ledger, lastCompletedDay(now()), range)
  const current = currentSnapshot(dataDir) ?? null
  const pulls = await listPulls(dependencies)
  const result = {
    current,
    ...(pulls && { pull: pulls }),
    read: days.read.map(({ day, files }) => ({ day, files: files.map(({ name }) => name) })),
    forget: days.gone,
    ...days.counts,
  }
  printResult(dependencies, json, result, describe(days, current, pulls ?? []))
}

/** The days that a run would pull from the cluster first; undefined if there is none. */
async function listPulls({ config, now, progress }: Dependencies): Promise<readonly string[] | undefined> {
  if (config.usageSource === undefined) return undefined
  const { pullCluster } = await import('../sources/cluster.ts')
  return await pullCluster({
    address: config.usageSource,
    rawFolder: join(config.dataDir, RAW_FOLDER),
    lastDay: lastCompletedDay(now()),
    note: (message) => progress.note(message),
  })
}

function describe(days: DayPlan, current: string | null, pulls: readonly string[]): string[] {
  const { counts } = days
  const lines = [
    ...pulls.map((day) => `  pull    ${day}: new or changed on the cluster`),
    ...days.read.map(({ day, files }) => `  read    ${day}: ${pluralize(files.length, 'file')}`),
    ...days.gone.map((day) => `  forget  ${day}: its files are gone`),
  ]
  return [
    `current snapshot: ${current ?? 'none'}`,
    `${pluralize(days.read.length, 'day')} to read, ${days.gone.length} to forget, ${counts.unchanged} unchanged, ` +
      `${counts.left} left for the next full run, ${counts.before_floor} before the floor, ` +
      `${counts.not_completed} not over yet`,
    ...lines,
    lines.length === 0
      ? 'A run would publish only if the registry, the credit lines, PUBLISHER, PUBLIC_URL or this program changed since the newest snapshot'
      : 'A run would publish if the figures of these days, the registry or the credit lines changed',
  ]
}
