/** Records how a run ended. */
import { join } from 'node:path'
import { wholeSeconds } from './contract/calendar.ts'
import { LAST_RUN_FILE } from './contract/last-run.ts'
import type { LastRun } from './contract/last-run.ts'
import { writeInOneStep } from './snapshot/durable-file.ts'

/** Records how a run ended. If even that cannot be written, the run has already reported why. */
export function leaveLastRun(
  dataDir: string,
  { outcome, snapshot, message }: Omit<LastRun, 'finished_at'>,
): void {
  const lastRun: LastRun = { finished_at: wholeSeconds(new Date()), outcome, snapshot, message }
  try {
    writeInOneStep(join(dataDir, LAST_RUN_FILE), `${JSON.stringify(lastRun, null, 2)}\n`)
  } catch {}
}
