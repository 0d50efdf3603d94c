/** `plan`: reports what a run would read and publish; writes nothing. */
import { join } from 'node:path'
import { lastCompletedDay } from '../contract/calendar.ts'
import { RAW_FOLDER } from '../contract/files.ts'
import { readWarehouse } from '../duckdb/warehouse.ts'
import { JSON_OPTION } from '../program/options.ts'
import { pluralize } from '../program/terminal.ts'
import { AS_OF_OPTION, RANGE_OPTIONS, readRange } from '../run-options.ts'
import { currentSnapshot } from '../snapshot/list.ts'
import { pullCluster } from '../sources/cluster.ts'
import { listUsageDays } from '../sources/drop-folder.ts'
import { planDays, readLedger, type DayPlan } from '../stages/load.ts'
import { command, printResult } from './command.ts'

export const plan = command({
  summary: 'shows which days a run would read, and writes nothing',
  options: { ...RANGE_OPTIONS, ...AS_OF_OPTION, ...JSON_OPTION },
  async work(dependencies, { 'as-of': asOf = dependencies.now(), json, ...options }) {
    const { config, progress } = dependencies
    const { usageSource: address } = config
    const rawFolder = join(config.dataDir, RAW_FOLDER)
    const lastDay = lastCompletedDay(asOf)
    const ledger = (await readWarehouse(config, readLedger)) ?? new Map()
    const found = listUsageDays(rawFolder)
    const days = planDays(found, ledger, lastDay, readRange(options, lastDay))
    const current = currentSnapshot(config.dataDir) ?? null
    const pulls = address && (await pullCluster({ address, rawFolder, lastDay, progress }))
    const result = {
      current,
      ...(pulls && { pull: pulls }),
      read: days.read.map(({ day, files }) => ({ day, files: files.map(({ name }) => name) })),
      forget: days.gone,
      ...days.counts,
    }
    printResult(dependencies, json, result, describe(days, current, pulls ?? []))
  },
})

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
  ]
}
