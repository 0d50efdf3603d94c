/** Loads a server over many connections from a process of its own, and reports how many replies came and how fast. */
import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'
import { z } from 'zod'
import { percentile, reportMeasured } from './measure.ts'

const taskSchema = z.object({
  url: z.url(),
  connections: z.int(),
  seconds: z.number(),
  headers: z.record(z.string(), z.string()),
  /** A JSON array of keys. */
  keysFile: z.string(),
  /** The status that every reply should have. */
  status: z.int(),
})
export type LoadTask = z.input<typeof taskSchema>

/** Below the limit of a minute, since what is under way when a connection takes its next key counts too. */
const REQUESTS_PER_KEY = 25
const WARM_UP_SHARE = 0.25
const LIMITED = 429

const task = taskSchema.parse(JSON.parse(process.argv[2] ?? ''))
const keys = z.array(z.string()).parse(JSON.parse(readFileSync(task.keysFile, 'utf8')))
let keysTaken = 0

/** Each connection takes a key of an account of its own, and the next when that one is nearly used up. */
function takeKeys(client: autocannon.Client): void {
  let used = 0
  const next = () => {
    const key = keys[keysTaken % keys.length] ?? ''
    keysTaken += 1
    client.setHeaders({ ...task.headers, authorization: `Bearer ${key}` })
  }
  client.on('response', () => {
    used += 1
    if (used % REQUESTS_PER_KEY === 0) next()
  })
  next()
}

const { url, connections, status, seconds } = task
const times: number[] = []
const count = { limited: 0, failed: 0 }
// The first replies compile the code and open the connections; what fails counts from the start.
let measuring: number | undefined
const warm = setTimeout(() => (measuring = performance.now()), seconds * WARM_UP_SHARE * 1000)

let last = 0
const ended = Promise.withResolvers<autocannon.Result>()
const running = autocannon(
  { url, connections, duration: seconds * (1 + WARM_UP_SHARE), sampleInt: 100, setupClient: takeKeys },
  (error: unknown, result) => {
    if (error instanceof Error) ended.reject(error)
    else ended.resolve(result)
  },
)
running.on('response', (_client, code, _bytes, ms) => {
  if (code === LIMITED) count.limited += 1
  else if (code !== status) count.failed += 1
  if (measuring === undefined) return
  times.push(ms)
  last = performance.now()
})
const { errors } = await ended.promise
clearTimeout(warm)
reportMeasured({
  perSecond: (times.length / (last - (measuring ?? last))) * 1000,
  p50: percentile(times, 0.5),
  p99: percentile(times, 0.99),
  slowest: percentile(times, 1),
  replies: times.length,
  limited: count.limited,
  // Connections that broke and requests without an answer among them.
  failed: count.failed + errors,
})
