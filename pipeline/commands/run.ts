/** `run`: one pipeline run. */
import { refuseMissing } from '../config.ts'
import { lastCompletedDay } from '../contract/calendar.ts'
import { firstLineOf } from '../errors.ts'
import { JSON_OPTION, flag } from '../program/options.ts'
import { ACCEPT_OPTION, AS_OF_OPTION, RANGE_OPTIONS, readRange, type RunOptions } from '../run-options.ts'
import { makeSnapshotsFolder, runNightly } from '../run.ts'
import { placeSample } from '../sources/sample.ts'
import type { Progress } from '../terminal/progress.ts'
import { command, type Dependencies } from './command.ts'
import { plan } from './plan.ts'
import { pruneSnapshots } from './prune.ts'

export const run = command({
  summary: 'counts new and changed days, checks the result and publishes it; the default command',
  options: {
    ...RANGE_OPTIONS,
    ...ACCEPT_OPTION,
    ...AS_OF_OPTION,
    'dry-run': flag('shows which days a run would read, as plan does; writes nothing'),
    'with-sample': flag('puts the bundled sample in first, if DATA_DIR holds no snapshot and no raw usage'),
    brief: flag('summarises the run in one line instead of a line per stage'),
    ...JSON_OPTION,
  },
  async work(given, { accept: accepted, 'dry-run': dryRun, ...options }) {
    if (dryRun) {
      refuseMissing(given.config)
      return await plan.work(given, options, [])
    }
    const { 'as-of': asOf } = options
    const dependencies = asOf === undefined ? given : { ...given, now: () => asOf }
    const range = readRange(options, lastCompletedDay(dependencies.now()))
    if (options['with-sample']) offerSample(given)
    await runAndPrune(dependencies, { accepted, range }, options)
  },
})

/** A run as a command: removes old snapshots after it, and prints its report. */
export async function runAndPrune(
  dependencies: Dependencies,
  options: RunOptions,
  { brief = false, json }: { readonly brief?: boolean; readonly json: boolean },
): Promise<void> {
  const { retentionDays } = dependencies.config
  const report = await (brief ? runBriefly : runNightly)(dependencies, options)
  if (retentionDays !== undefined) await pruneAfter(dependencies, retentionDays)
  if (json) dependencies.print(JSON.stringify(report, null, 2))
}

/** A run that ends with one line, instead of one for each stage. */
const runBriefly: typeof runNightly = async (dependencies, options) => {
  let outcome = ''
  const progress: Progress = {
    ...dependencies.progress,
    finished(stage, summary) {
      // It says what is published, or why nothing is.
      if (stage === 'rank') outcome = summary
    },
  }
  const report = await runNightly({ ...dependencies, progress }, options)
  const ms = report.stages.reduce((sum, stage) => sum + Number(stage['ms']), 0)
  dependencies.progress.finished('run', outcome, ms)
  return report
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
