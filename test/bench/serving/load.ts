/** Loads a server over many connections from a separate process, and reports number and speed of the replies. */
import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'
import { percentile, reportMeasured } from '../measure.ts'
import { loadTaskSchema, REQUESTS_PER_KEY, WARM_UP_SHARE } from './load-task.ts'

const task = loadTaskSchema.parse(JSON.parse(process.argv[2] ?? ''))
const keys = readFileSync(task.keysFile, 'utf8').split('\n')
let keysTaken = 0

/** Each connection uses its own account's key, and the next key once that one is nearly used up. */
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
let failed = 0
// The first replies compile the code and open the connections; failures count from the start.
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
  if (code !== status) failed += 1
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
  // Includes broken connections and unanswered requests.
  failed: failed + errors,
})
