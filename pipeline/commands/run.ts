/** `run`: one pipeline run. */
import { lastCompletedDay } from '../contract/calendar.ts'
import { firstLineOf } from '../errors.ts'
import { JSON_OPTION, flag } from '../program/options.ts'
import { ACCEPT_OPTION, AS_OF_OPTION, RANGE_OPTIONS, readRange, type RunOptions } from '../run-options.ts'
import { makeSnapshotsFolder, runNightly } from '../run.ts'
import { placeSample } from '../sources/sample.ts'
import { command, type Dependencies } from './command.ts'
import { pruneSnapshots } from './prune.ts'

export const run = command({
  summary:
    'counts new and changed days, checks the result and publishes it; the default command (plan shows what it would read)',
  options: {
    ...RANGE_OPTIONS,
    ...ACCEPT_OPTION,
    ...AS_OF_OPTION,
    'with-sample': flag('puts the bundled sample in first, if DATA_DIR holds no snapshot and no raw usage'),
    ...JSON_OPTION,
  },
  async work(given, { accept: accepted, 'as-of': asOf, ...options }) {
    const dependencies = asOf === undefined ? given : { ...given, now: () => asOf }
    const range = readRange(options, lastCompletedDay(dependencies.now()))
    if (options['with-sample']) offerSample(given)
    await runAndPrune(dependencies, { accepted, range }, options.json)
  },
})

/** A run as a command: removes old snapshots after it, and prints its report. */
export async function runAndPrune(
  dependencies: Dependencies,
  options: RunOptions,
  json: boolean,
): Promise<void> {
  const { retentionDays } = dependencies.config
  const report = await runNightly(dependencies, options)
  if (retentionDays !== undefined) await pruneAfter(dependencies, retentionDays)
  if (json) dependencies.print(JSON.stringify(report, null, 2))
}

/** Removes old snapshots. The new snapshot is published by then, so an error is only reported. */
async function pruneAfter(dependencies: Dependencies, keepDays: number): Promise<void> {
  const { progress } = dependencies
  try {
    const removed = await pruneSnapshots(dependencies, keepDays, false)
    if (removed.length > 0) progress.note(`Removed by RETENTION_DAYS: ${removed.join(', ')}`)
  } catch (error) {
    progress.note(`Old snapshots could not be removed: ${firstLineOf(error)}`)
  }
}

function offerSample({ config, progress }: Dependencies): void {
  // The usage of a cluster is no empty start, even if nothing was pulled yet.
  if (config.usageSource !== undefined) return
  makeSnapshotsFolder(config.dataDir)
  if (placeSample(config.dataDir)) {
    progress.note(`DATA_DIR had no usage: the bundled sample is now in ${config.dataDir}/raw`)
  }
}
