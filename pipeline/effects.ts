/** What a run may do to the world besides its files: read the clock and tell the operator. */
import type { Progress } from './terminal/progress.ts'

export type Effects = {
  /** The present; tests and `--as-of` set it. */
  readonly now: () => Date
  readonly progress: Progress
}
