import { z } from 'zod'

/** Load on one address. */
export const loadTaskSchema = z.object({
  url: z.url(),
  connections: z.int(),
  seconds: z.number(),
  headers: z.record(z.string(), z.string()),
  /** A file with a key on each line. */
  keysFile: z.string(),
  /** The expected status of every reply. */
  status: z.int(),
})
export type LoadTask = z.input<typeof loadTaskSchema>

/** Below the limit per minute, since requests under way at a change of keys count too. */
export const REQUESTS_PER_KEY = 25

/** Ratio of load to measured time: the first replies compile the code. */
export const WARM_UP_SHARE = 0.25
