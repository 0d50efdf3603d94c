/** Loads a server with wrk. Load generators in JavaScript need more processor time than the servers measured here. */
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { request } from 'undici'
import { z } from 'zod'
import type { Measured } from './measure.ts'

/** Load on one address. */
export type LoadTask = {
  readonly url: string
  readonly connections: number
  readonly seconds: number
  readonly headers: Readonly<Record<string, string>>
  /** A file with a key on each line. */
  readonly keysFile: string
  /** The expected status of every reply. */
  readonly status: number
  /** The body of a POST; a GET without it. */
  readonly body?: string
}

/** Below the limit per minute, since requests under way at a change of keys count too. */
export const REQUESTS_PER_KEY = 25

/** Ratio of load to measured time: the first replies compile the code. */
const WARM_UP_SHARE = 0.25

/** Whether wrk is installed; a part of the bench that needs it says so and ends. */
export function hasWrk(): boolean {
  return spawnSync('wrk', ['--version']).error === undefined
}

const SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url))

const saidSchema = z.record(z.enum(['replies', 'us', 'p50', 'p99', 'slowest', 'refused', 'broken']), z.int())
type Said = z.infer<typeof saidSchema>

/** Warms up, then measures; wrk counts whole seconds only, at least one. */
export async function loadWithWrk(task: LoadTask): Promise<Measured> {
  await checkStatus(task)
  const warm = await runWrk(task, task.seconds * WARM_UP_SHARE, 0)
  // The next unused key: when wrk ended, a request of each connection may have been under way.
  const keysUsed = Math.ceil((warm.replies + task.connections) / REQUESTS_PER_KEY)
  const said = await runWrk(task, task.seconds, keysUsed * REQUESTS_PER_KEY)
  return {
    figures: {
      perSecond: (said.replies / said.us) * 1e6,
      p50: said.p50 / 1000,
      p99: said.p99 / 1000,
      slowest: said.slowest / 1000,
      replies: said.replies,
      failed: warm.refused + warm.broken + said.refused + said.broken,
    },
    peakMegabytes: 0,
  }
}

/** wrk counts only 4xx and 5xx separately. The Cache-Control of fetch would make a 200 of a 304. */
async function checkStatus({ url, headers, keysFile, status, body }: LoadTask): Promise<void> {
  const [key] = readFileSync(keysFile, 'utf8').split('\n')
  const authorized = { ...headers, authorization: `Bearer ${key}` }
  const { statusCode, body: reply } = await request(
    url,
    body === undefined
      ? { headers: authorized }
      : { method: 'POST', body, headers: { ...authorized, 'content-type': 'application/json' } },
  )
  await reply.dump()
  if (statusCode !== status) throw new Error(`${url} was answered ${statusCode} instead of ${status}`)
}

async function runWrk(task: LoadTask, seconds: number, sentBefore: number): Promise<Said> {
  const lines = Object.entries(task.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const duration = `${Math.max(1, Math.round(seconds))}s`
  const options = ['--threads', '1', '--connections', String(task.connections), '--duration', duration]
  const toScript = [
    task.keysFile,
    String(REQUESTS_PER_KEY),
    String(sentBefore),
    lines.join(''),
    task.body ?? '',
  ]
  const args = options.concat('--script', SCRIPT, task.url, '--', toScript)
  const { stdout } = await promisify(execFile)('wrk', args)
  return saidSchema.parse(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? ''))
}
