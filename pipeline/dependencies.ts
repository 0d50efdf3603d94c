/** What a run is handed: the clock, and where it reports to the operator. */
import type { Send } from './program/webhook.ts'
import type { Progress } from './terminal/progress.ts'

export type Dependencies = {
  /** The present; tests and `--as-of` set it. */
  readonly now: () => Date
  readonly progress: Progress
  /** Sends a notice; over HTTP if not given. */
  readonly send?: Send
}
