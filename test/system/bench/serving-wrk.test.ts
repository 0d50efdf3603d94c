import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { hasProgram } from '../../support/programs.ts'
import { figure } from '../../bench/measure.ts'
import { REQUESTS_PER_KEY } from '../../bench/serving/load-task.ts'
import { loadWithWrk } from '../../bench/serving/wrk.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const KEYS = Array.from({ length: 100 }, (_, index) => `key-${index}`)

/** Loads a server that chooses each status from the keys seen before. */
async function loadServer(answer: (seen: readonly string[], header: string | undefined) => number) {
  const seen: string[] = []
  const server = createServer((request, response) => {
    const status = answer(seen, request.headers['x-test']?.toString())
    seen.push(request.headers.authorization?.replace('Bearer ', '') ?? '')
    // Few requests, so that the keys are not used up.
    setTimeout(() => response.writeHead(status).end('body'), 5)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const keysFile = join(folders.make(), 'keys')
  writeFileSync(keysFile, KEYS.join('\n'))
  try {
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const task = { url: `http://127.0.0.1:${port}/path`, connections: 2, seconds: 1, status: 200, keysFile }
    return { measured: await loadWithWrk({ ...task, headers: { 'X-Test': 'yes' } }), seen }
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

describe.runIf(hasProgram('wrk'))('loadWithWrk', () => {
  it('wrk uses no key beyond its limit, and measures', async () => {
    const { measured, seen } = await loadServer((_seen, header) => (header === 'yes' ? 200 : 500))
    const uses = KEYS.map((key) => seen.filter((used) => used === key).length)
    // The first key was also used to check the status.
    expect(Math.max(...uses)).toBeLessThanOrEqual(REQUESTS_PER_KEY + 1)
    expect(seen.every((key) => KEYS.includes(key))).toBe(true)
    expect(figure(measured, 'failed')).toBe(0)
    expect(figure(measured, 'replies')).toBeGreaterThan(0)
    expect(figure(measured, 'perSecond')).toBeGreaterThan(0)
    expect(figure(measured, 'p50')).toBeGreaterThanOrEqual(5)
    expect(figure(measured, 'slowest')).toBeGreaterThanOrEqual(figure(measured, 'p99'))
  })

  it('wrk counts rejected requests', async () => {
    const { measured } = await loadServer((seen) => (seen.length % 2 === 0 ? 200 : 429))
    expect(figure(measured, 'failed')).toBeGreaterThan(0)
  })

  it('wrk accepts only the expected status', async () => {
    await expect(loadServer(() => 304)).rejects.toThrow('answered 304 instead of 200')
  })
})
