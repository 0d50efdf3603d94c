/** How the last run ended, for whoever asks the morning after: DATA_DIR/last-run.json, never part of what is published. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { wholeSeconds } from './contract/calendar.ts'
import { writeInOneStep } from './snapshot/durable-file.ts'
import { OUTCOMES } from './stages/stage.ts'

const LAST_RUN_FILE = 'last-run.json'

const lastRunSchema = z.object({
  /** By the clock, also where the run was of another time. */
  finished_at: z.string(),
  outcome: z.enum(OUTCOMES),
  /** What is published since then; null where the run failed or was blocked. */
  snapshot: z.string().nullable(),
  /** Why it failed or was blocked. */
  message: z.string().nullable(),
})
export type LastRun = z.infer<typeof lastRunSchema>

/** Leaves word of a run that is over. Where not even that can be written, the run itself has said why. */
export function leaveLastRun(
  dataDir: string,
  { outcome, snapshot, message }: Omit<LastRun, 'finished_at'>,
): void {
  const lastRun: LastRun = { finished_at: wholeSeconds(new Date()), outcome, snapshot, message }
  try {
    writeInOneStep(join(dataDir, LAST_RUN_FILE), `${JSON.stringify(lastRun, null, 2)}\n`)
  } catch {}
}

/** The last run that came to an end; undefined where there was none, or nothing readable is left of it. */
export function readLastRun(dataDir: string): LastRun | undefined {
  try {
    return lastRunSchema.parse(JSON.parse(readFileSync(join(dataDir, LAST_RUN_FILE), 'utf8')))
  } catch {
    return undefined
  }
}
