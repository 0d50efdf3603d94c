/** CONTRACT 6: whatever fails, the pipeline counts exactly the tokens that the provider reported, once. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { BASE_PATH } from '../../../../api/paths.ts'
import { makeKey, startServer, until } from '../../../support/api.ts'
import { readRecords, writeModels } from '../../../support/chat/chat.ts'
import { makeFolder } from '../../../support/folders.ts'
import { LONG } from '../../../support/long.ts'
import { publish, query } from '../../../support/pipeline/nightly.ts'
import { randomFrom, seedFrom } from '../../../support/random.ts'
import {
  chunk,
  chunksOf,
  completion,
  cutAfter,
  json,
  reset,
  sse,
  startUpstream,
  status,
  stream,
  type Behaviour,
} from '../../../support/chat/upstream.ts'

/** The gate needs 5000; fewer requests keep the daily run of the tests short. */
const REQUESTS = 5000
const AT_ONCE = 20
const DAY_MS = 86_400_000

const askedSchema = z.object({ messages: z.tuple([z.object({ content: z.string() })]) })

/**
 * A provider with random faults. Each request has a unique number of prompt tokens, which identifies it in its record.
 */
function startFaulty(random: () => number) {
  const reported = new Set<number>()
  const faulty: Behaviour = async (response, received) => {
    const chance = random()
    if (chance < 0.08) return await status(500)(response, received)
    if (chance < 0.12) return await status(429)(response, received)
    if (chance < 0.15) return await reset(response, received)
    const number = Number(askedSchema.parse(received.body).messages[0].content)
    const usage = { prompt_tokens: number, completion_tokens: 1 + (number % 7) }
    if (received.body.stream !== true) await json({ ...completion(), usage })(response, received)
    else if (chance < 0.2) return await cutAfter(chunk({ content: 'Hel' }))(response, received)
    else await stream(sse(chunksOf(['Hel', 'lo'], usage)), chance < 0.5 ? 37 : Infinity)(response, received)
    reported.add(number)
  }
  return { reported, faulty }
}

const countedSchema = z.tuple([
  z.object({ requests: z.coerce.number(), prompt: z.coerce.number(), completion: z.coerce.number() }),
])

it('each request is counted once, through faults, leaving clients and restarts', LONG, async () => {
  const random = randomFrom(seedFrom('CHAT_SEED'))
  const { reported, faulty } = startFaulty(random)
  await using upstream = await startUpstream({ faulty })
  const dataDir = makeFolder()
  const provider = { base_url: upstream.url, model: 'faulty' }
  const MODELS_FILE = writeModels(dataDir, {
    'a/one': ['alpha', 'beta', 'gamma'].map((name) => ({ ...provider, name })),
  })
  const environment = { DATA_DIR: dataDir, MODELS_FILE }
  const began = Date.now()
  const openFiles = async () => {
    const metrics = await (await fetch(`${program.origin}/metrics`)).text()
    return Number(/^process_open_fds (\d+)$/m.exec(metrics)?.[1])
  }
  let program = await startServer(environment)
  const filesBefore = await openFiles()
  const key = await makeKey(environment)

  /** Sends one request; its client may leave at any moment. True if it was answered to its end. */
  async function ask(number: number): Promise<boolean> {
    const headers = {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      'HTTP-Referer': `https://app-${number % 3}.example`,
    }
    const messages = [{ role: 'user', content: String(number) }]
    const body = JSON.stringify({ model: 'a/one', stream: number % 2 === 0, messages })
    const signal = random() < 0.1 ? AbortSignal.timeout(Math.floor(random() * 5)) : null
    const address = `${program.origin}${BASE_PATH}/chat/completions`
    try {
      await (await fetch(address, { method: 'POST', headers, body, signal })).text()
      return true
    } catch {
      return false
    }
  }

  let next = 1
  const answered = new Set<number>()
  const atKill = new Set<number>()
  async function worker(last: number): Promise<void> {
    for (let number = next++; number <= last; number = next++) {
      if (await ask(number)) answered.add(number)
    }
  }
  for (const [part, signal] of (['SIGTERM', 'SIGKILL', 'SIGTERM', 'SIGKILL', undefined] as const).entries()) {
    const last = ((part + 1) * REQUESTS) / 5
    const workers = Array.from({ length: AT_ONCE }, () => worker(last))
    if (signal !== undefined) {
      await until(() => next > last - REQUESTS / 10)
      // The service also reads replies of clients that left.
      if (signal === 'SIGKILL')
        for (let number = next - 1; number > next - 5 * AT_ONCE; number--) atKill.add(number)
      await program.stop(signal)
    }
    await Promise.all(workers)
    next = last + 1
    if (signal !== undefined) program = await startServer(environment)
  }
  // Clients that left leave no socket behind, but for connections that are kept for the next request.
  await until(async () => (await openFiles()) <= filesBefore + 2 * AT_ONCE)
  expect((await program.stop()).code).toBe(0)

  const days = [...new Set([began, Date.now()].map((time) => new Date(time).toISOString().slice(0, 10)))]
  const served = days.flatMap((day) => readRecords(dataDir, day)).filter((record) => record['requests'] === 1)
  const counted = served
    .map((record) => record['prompt_tokens'])
    .filter((tokens) => typeof tokens === 'number')
  expect(new Set(counted).size).toBe(counted.length)
  const lost = [...reported].filter((number) => !counted.includes(number))
  // Only requests in progress at the kill may be missing, and none that was answered whole.
  expect(lost.filter((number) => !atKill.has(number) || answered.has(number))).toEqual([])
  expect(counted.filter((number) => !reported.has(number))).toEqual([])
  expect(counted.length).toBeGreaterThan(REQUESTS / 2)

  await publish(dataDir, new Date(Date.now() + 2 * DAY_MS).toISOString().replace(/\.\d+Z$/, 'Z'))
  const sums = `SELECT sum(requests) AS requests, sum(prompt_tokens) AS prompt, sum(completion_tokens) AS completion
    FROM usage_daily`
  const [warehouse] = countedSchema.parse(await query(join(dataDir, 'warehouse.duckdb'), sums))
  expect(warehouse).toEqual({
    requests: served.length,
    prompt: counted.reduce((sum, number) => sum + number, 0),
    completion: counted.reduce((sum, number) => sum + 1 + (number % 7), 0),
  })
})
