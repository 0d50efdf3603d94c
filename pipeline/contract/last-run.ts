/** How the last run ended: DATA_DIR/last-run.json, for `status` and the API; its message is never published. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** Name of the file in DATA_DIR. */
export const LAST_RUN_FILE = 'last-run.json'

/** How a run ended. */
const OUTCOMES = ['published', 'unchanged', 'blocked', 'failed'] as const
export type Outcome = (typeof OUTCOMES)[number]

/** `late`: a scheduled run could not begin or was killed, and the schedule tries again. */
export const outcomeSchema = z.enum([...OUTCOMES, 'late'])

const lastRunSchema = z.object({
  /** Clock time, also for a run with --as-of. */
  finished_at: z.string(),
  outcome: outcomeSchema,
  /** The current snapshot after the run; null if there is none. */
  snapshot: z.string().nullable(),
  /** Why it failed, was blocked or is late. */
  message: z.string().nullable(),
})
export type LastRun = z.infer<typeof lastRunSchema>

/**
 * The last run; undefined if there was none.
 * @throws if the file cannot be read.
 */
export function readLastRun(dataDir: string): LastRun | undefined {
  const path = join(dataDir, LAST_RUN_FILE)
  return existsSync(path) ? lastRunSchema.parse(JSON.parse(readFileSync(path, 'utf8'))) : undefined
}
