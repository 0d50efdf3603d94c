import { z } from 'zod'

/** A load on one address. */
export const loadTaskSchema = z.object({
  url: z.url(),
  connections: z.int(),
  seconds: z.number(),
  headers: z.record(z.string(), z.string()),
  /** A file with a key on each line. */
  keysFile: z.string(),
  /** The status that every reply should have. */
  status: z.int(),
})
export type LoadTask = z.input<typeof loadTaskSchema>

/** Below the limit of a minute, since what is under way when the next key is taken counts too. */
export const REQUESTS_PER_KEY = 25

/** How much longer than it is measured a server is loaded: the first replies compile the code. */
export const WARM_UP_SHARE = 0.25
