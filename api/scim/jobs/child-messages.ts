/** The messages between a service and the child process of a sync. */
import { z } from 'zod'
import { readFailure } from '../failures.ts'

const failureSchema = z.string().transform(readFailure)

/** To the child: its task, and that it has its slot back after a pause. */
export const toChildSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('task'),
    store: z.object({ DATA_DIR: z.string(), DATABASE_URL: z.string().optional() }),
    task: z.object({
      running: z.object({ id: z.string(), runner: z.string() }),
      accountId: z.string(),
    }),
    allowDeletions: z.boolean(),
    memoryBytes: z.number(),
  }),
  z.object({ kind: z.literal('go_on'), pause: z.number() }),
])

/** From the child. A pause that the directory demands begins and ends. */
export const fromChildSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('pause'), pause: z.number() }),
  z.object({ kind: z.literal('paused'), pause: z.number() }),
  z.object({
    kind: z.literal('requested'),
    outcome: z.union([z.enum(['answer', 'slow_down', 'transient']), failureSchema]),
  }),
  z.object({
    kind: z.literal('done'),
    report: z.object({
      synced: z.number(),
      deleted: z.number(),
      changed: z.number(),
      complete: z.boolean(),
      warnings: z.array(z.string()).readonly(),
    }),
  }),
  z.object({ kind: z.literal('failed'), failure: failureSchema, detail: z.string() }),
])

export type ToChild = z.infer<typeof toChildSchema>
export type FromChild = z.infer<typeof fromChildSchema>
