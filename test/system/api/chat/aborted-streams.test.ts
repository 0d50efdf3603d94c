/** CONTRACT 6: thousands of streams with clients that disconnect leave nothing behind. */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { afterAll, expect, it, vi } from 'vitest'
import { CHAT_LIMITS } from '../../../../api/chat/service.ts'
import { BASE_PATH } from '../../../../api/paths.ts'
import { makeKey, said, startServer, until } from '../../../support/api.ts'
import { MESSAGES, writeModels } from '../../../support/chat/chat.ts'
import { INSPECTED, INSPECTOR_URL, liveHeapBytes } from '../../../support/live-heap.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { chunk, sse, startUpstream } from '../../../support/chat/upstream.ts'
import { readRecords } from '../../../support/chat/usage-records.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const ABORTED = 10_000
/** As many as are read on at once, with all code compiled. */
const WARM_UP = 1000
const AT_ONCE = 50
/** The limit per stream in bytes, below the smallest object that represents one. */
const KEPT_PER_STREAM = 500

it(`${ABORTED} streams that their clients abort leave memory and sockets flat`, async () => {
  await using upstream = await startUpstream({
    endless: async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(sse([chunk({ content: 'Hel' })], false))
      await once(response, 'close')
    },
  })
  const dataDir = folders.make()
  const MODELS_FILE = writeModels(dataDir, { 'a/one': [{ base_url: upstream.url, model: 'endless' }] })
  const program = await startServer({ DATA_DIR: dataDir, MODELS_FILE, NODE_OPTIONS: INSPECTED })
  const [, inspector = ''] = await said(program, 'stderr', INSPECTOR_URL)
  const key = await makeKey({ DATA_DIR: dataDir })
  const openSockets = async () => {
    const text = await (await fetch(`${program.origin}/metrics`)).text()
    return Number(/^process_open_fds (\d+)$/m.exec(text)?.[1])
  }
  const abortOne = async () => {
    const request = httpRequest(`${program.origin}${BASE_PATH}/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    })
    request.on('error', () => undefined)
    request.end(JSON.stringify({ model: 'a/one', messages: MESSAGES, stream: true }))
    const [response] = await once(request, 'response')
    await once(response, 'data')
    response.destroy()
  }
  const abortMany = async (streams: number) => {
    let left = streams
    const worker = async () => {
      while (left-- > 0) await abortOne()
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
  }
  const socketsBefore = await openSockets()
  await abortMany(WARM_UP)
  const bytesBefore = await liveHeapBytes(inspector)
  await abortMany(ABORTED - WARM_UP)
  const grown = (await liveHeapBytes(inspector)) - bytesBefore
  expect(grown).toBeLessThan((ABORTED - WARM_UP) * KEPT_PER_STREAM)
  // Some of the last ones are still read.
  const atMost = socketsBefore + CHAT_LIMITS.drains + AT_ONCE
  await until(async () => (await openSockets()) <= atMost)
  program.child.kill('SIGTERM')
  expect((await program.ended).code).toBe(0)
  const today = new Date().toISOString().slice(0, 10)
  const records = [today, new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)].flatMap((day) =>
    readRecords(dataDir, day),
  )
  expect(records).toHaveLength(ABORTED)
})
