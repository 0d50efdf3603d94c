/** `run`: one pipeline run. */
import { parseCommandLine } from '../program/program.ts'
import { lastCompletedDay, wholeSeconds } from '../contract/calendar.ts'
import { firstLineOf } from '../errors.ts'
import { makeFolders, runNightly } from '../run.ts'
import { RANGE_OPTIONS, readAccepted, readAsOf, readRange } from '../run-options.ts'
import { placeSample } from '../sources/sample.ts'
import { createBriefProgress } from '../terminal/progress.ts'
import { JSON_OPTION } from './command.ts'
import type { Command, Dependencies } from './command.ts'
import { plan } from './plan.ts'
import { pruneSnapshots } from './prune.ts'

export const run: Command = {
  usage:
    'run [--from DAY] [--to DAY] [--accept GATE] [--as-of TIME] [--dry-run] [--with-sample] [--brief] [--json]',
  summary: 'counts new and changed days, checks the result and publishes it; the default command',
  options: {
    '--from DAY, --to DAY':
      'count every day of this range again (YYYY-MM-DD, both inclusive), and no other day',
    '--accept GATE': 'let a gate through once: volume, rows, apps or conflicts; may be repeated',
    '--as-of TIME':
      'run as if it were TIME (ISO 8601, such as 2026-11-20T02:00:00Z): days up to the one before count as completed, ' +
      'and the snapshot states this time; a TIME in the future blocks later runs until then',
    '--dry-run': 'show what a run would do; write nothing',
    '--with-sample': 'put the bundled sample in first, if DATA_DIR holds neither a snapshot nor anything raw',
    '--brief': 'summarise the run in one line instead of a line per stage',
    '--json': 'print the report as JSON',
  },
  prepare(args) {
    const { values } = parseCommandLine({
      args,
      options: {
        ...JSON_OPTION,
        ...RANGE_OPTIONS,
        accept: { type: 'string', multiple: true, default: [] },
        'as-of': { type: 'string' },
        'dry-run': { type: 'boolean', default: false },
        'with-sample': { type: 'boolean', default: false },
        brief: { type: 'boolean', default: false },
      },
    })
    const asOf = readAsOf(values['as-of'])
    const accepted = readAccepted(values.accept)
    return async (dependencies) => {
      const now = asOf === undefined ? dependencies.now : () => asOf
      const range = readRange(values, lastCompletedDay(now()))
      if (values['dry-run']) return plan({ ...dependencies, now }, range, values.json)
      if (asOf !== undefined && asOf > dependencies.now()) warnOfFuture(dependencies, asOf)
      if (values['with-sample']) offerSample(dependencies)
      const brief = values.brief ? createBriefProgress(dependencies.progress) : undefined
      const progress = brief?.progress ?? dependencies.progress
      const report = await runNightly(
        dependencies.config,
        { ...dependencies, now, progress },
        { accepted, range },
      )
      brief?.end()
      await pruneAfter({ ...dependencies, now })
      if (values.json) dependencies.print(JSON.stringify(report, null, 2))
    }
  },
}

/** Removes old snapshots if RETENTION_DAYS is set. The new snapshot is published by then, so an error is only reported. */
async function pruneAfter(dependencies: Dependencies): Promise<void> {
  const { config, progress } = dependencies
  if (config.retentionDays === undefined) return
  try {
    const removed = await pruneSnapshots(dependencies, config.retentionDays, false)
    if (removed.length > 0) progress.note(`Removed by RETENTION_DAYS: ${removed.join(', ')}`)
  } catch (error) {
    progress.note(`Old snapshots could not be removed: ${firstLineOf(error)}`)
  }
}

function warnOfFuture({ progress }: Dependencies, asOf: Date): void {
  progress.note(
    `--as-of ${wholeSeconds(asOf)} is later than the clock: the days through ${lastCompletedDay(asOf)} are published as ` +
      'completed, and later runs fail until the clock reaches that time. To undo it, retract the snapshot: ' +
      'npm run nightly -- retract ID --reason TEXT',
  )
}

function offerSample({ config, progress }: Dependencies): void {
  // A run on a cluster would not read the usage folder.
  if (config.usageSource !== undefined) return
  makeFolders(config.dataDir)
  if (placeSample(config.dataDir)) {
    progress.note(`DATA_DIR was empty: the bundled sample is now in ${config.dataDir}/raw`)
  }
}
