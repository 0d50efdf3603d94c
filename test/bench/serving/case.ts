/** One measured run of serving's part of the bench, in a separate process; the task is a JSON argument. */
import { z } from 'zod'
import { reportMeasured } from '../measure.ts'
import { publishFirst } from './publish.ts'
import { measureWindows } from './windows.ts'

const dataDir = z.string()
const count = z.int().positive()

/** The cases. */
const taskSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('publish'),
    dataDir,
    asOf: z.iso.datetime().transform((time) => new Date(time)),
  }),
  z.object({ kind: z.literal('windows'), dataDir, windows: count, plainEvery: count }),
])
export type Task = z.input<typeof taskSchema>

function measure(task: z.output<typeof taskSchema>): Promise<Record<string, number>> {
  switch (task.kind) {
    case 'publish':
      return publishFirst(task.dataDir, task.asOf)
    case 'windows':
      return measureWindows(task.dataDir, task)
  }
}

reportMeasured(await measure(taskSchema.parse(JSON.parse(process.argv[2] ?? ''))))
