/** `run`: one pipeline run. */
import { parseCommandLine } from '../terminal/command-line.ts'
import { lastCompletedDay, wholeSeconds } from '../contract/calendar.ts'
import { LockedOutError, UsageError, explained } from '../errors.ts'
import { leaveLastRun } from '../last-run.ts'
import { failureNotice, noticesOf, sendNotices } from '../notices.ts'
import type { Notice } from '../notices.ts'
import { makeFolders, runNightly } from '../run.ts'
import type { Report } from '../run.ts'
import { RANGE_OPTIONS, readAccepted, readAsOf, readRange } from '../run-options.ts'
import type { RunOptions } from '../run-options.ts'
import { placeSample } from '../sources/sample.ts'
import { JSON_OPTION } from './command.ts'
import type { Command, World } from './command.ts'
import { plan } from './plan.ts'

export const run: Command = {
  usage: 'run [--from DAY] [--to DAY] [--accept GATE] [--as-of TIME] [--dry-run] [--with-sample] [--json]',
  summary:
    'counts new and changed days, proves the result and publishes it; what runs when no command is given',
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
      },
    })
    const asOf = readAsOf(values['as-of'])
    const accepted = readAccepted(values.accept)
    return async (world) => {
      const now = asOf === undefined ? world.now : () => asOf
      const range = readRange(values, lastCompletedDay(now()))
      if (values['dry-run']) return plan({ ...world, now }, range, values.json)
      if (asOf !== undefined && asOf > world.now()) warnOfFuture(world, asOf)
      if (values['with-sample']) offerSample(world)
      const report = await runAndTell({ ...world, now }, { accepted, range })
      if (values.json) world.print(JSON.stringify(report, null, 2))
    }
  },
}

/** Runs, and tells how it ended to `status` and to whom notices go; a run that is locked out has not even begun. */
async function runAndTell({ config, progress, now, send }: World, options: RunOptions): Promise<Report> {
  const tell = (notices: readonly Notice[], well: boolean) =>
    sendNotices(config, notices, { well, send, progress })
  try {
    const report = await runNightly(config, { now, progress }, options)
    leaveLastRun(config.dataDir, report)
    await tell(noticesOf(report), true)
    return report
  } catch (error) {
    if (error instanceof LockedOutError) throw error
    const notice = failureNotice(explained(error, config.dataDir))
    // What is refused before any work leaves DATA_DIR as it is.
    if (!(error instanceof UsageError)) leaveLastRun(config.dataDir, { ...notice, outcome: notice.event })
    await tell([notice], false)
    throw error
  }
}

function warnOfFuture({ progress }: World, asOf: Date): void {
  progress.note(
    `--as-of ${wholeSeconds(asOf)} is later than the clock: the days through ${lastCompletedDay(asOf)} are published as ` +
      'completed, and later runs are refused until the clock is there, unless you take the snapshot back: ' +
      'npm run nightly -- retract ID --reason TEXT',
  )
}

function offerSample({ config, progress }: World): void {
  // Where a cluster counts, nothing in the folder of usage would be read.
  if (config.usageSource !== undefined) return
  makeFolders(config.dataDir)
  if (placeSample(config.dataDir)) {
    progress.note(`DATA_DIR was empty: the bundled sample is now in ${config.dataDir}/raw`)
  }
}
