/** Sends chat requests from a separate process, with a concurrency and a duration, and reports their times. */
import { Agent, request } from 'node:http'
import { once } from 'node:events'
import { z } from 'zod'
import { percentile, reportMeasured } from '../measure.ts'

const taskSchema = z.object({
  url: z.url(),
  headers: z.record(z.string(), z.string()),
  stream: z.boolean(),
  concurrency: z.int(),
  ms: z.number(),
})

const { url, headers, stream, concurrency, ms } = taskSchema.parse(JSON.parse(process.argv[2] ?? ''))
const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
const body = JSON.stringify({
  model: 'bench/model',
  messages: [{ role: 'user', content: 'Say a few words about nothing in particular.' }],
  stream,
})
const whole: number[] = []
const first: number[] = []

/** One request: milliseconds to the first byte of content and to the end. */
async function ask(): Promise<readonly [number, number]> {
  const began = performance.now()
  const sent = request(url, {
    method: 'POST',
    agent,
    headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
  })
  sent.end(body)
  const [response] = await once(sent, 'response')
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}`)
  let firstAt = 0
  response.on('data', () => (firstAt ||= performance.now()))
  await once(response, 'end')
  return [firstAt - began, performance.now() - began]
}

async function work(until: number, keep: boolean): Promise<void> {
  while (performance.now() < until) {
    const [toFirst, toEnd] = await ask()
    if (!keep) continue
    first.push(toFirst)
    whole.push(toEnd)
  }
}

const all = (until: number, keep: boolean) =>
  Promise.all(Array.from({ length: concurrency }, () => work(until, keep)))
// The first requests compile the code and open the connections.
await all(performance.now() + ms / 3, false)
const began = performance.now()
await all(began + ms, true)
const took = performance.now() - began
agent.destroy()
reportMeasured({
  perSecond: (whole.length / took) * 1000,
  p50: percentile(whole, 0.5),
  p99: percentile(whole, 0.99),
  first: percentile(first, 0.5),
})
