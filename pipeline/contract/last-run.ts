/** How the last run ended: DATA_DIR/last-run.json, its private report. `status` and the API read what is declared here. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** Name of the file in DATA_DIR. */
export const LAST_RUN_FILE = 'last-run.json'

/** `late`: a scheduled run could not begin or was killed, and the schedule tries again. */
export const outcomeSchema = z.enum(['published', 'unchanged', 'blocked', 'failed', 'late'])

const lastRunSchema = z.object({
  /** Clock time, also for a run with --as-of. */
  finished_at: z.string(),
  outcome: outcomeSchema,
  /** The snapshot that the run published or found unchanged. */
  snapshot: z.string().nullable(),
  /** Why it failed, was blocked or is late; never published. */
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
