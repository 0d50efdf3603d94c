/** CONTRACT 9: the API in 512 MB, a small container: large and compressed bodies do not end it. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeKey, startServer } from '../../../support/api.ts'
import { makeFolder } from '../../../support/folders.ts'
import { LONG } from '../../../support/long.ts'
import { startNightly } from '../../../support/pipeline/nightly.ts'
import { writeModels } from '../../../support/chat/chat.ts'
import { completion, json, startUpstream } from '../../../support/chat/upstream.ts'

const BYTES = 512 * 1024 * 1024

/** A control group with that limit, in either cgroup version; undefined if none can be created. */
function makeGroup(): string | undefined {
  const name = `app-rankings-test-${process.pid}`
  const places = [
    [join('/sys/fs/cgroup/memory', name), 'memory.limit_in_bytes'],
    [join('/sys/fs/cgroup', name), 'memory.max'],
  ] as const
  for (const [group, limit] of places) {
    if (!existsSync(join(group, '..', 'cgroup.procs'))) continue
    try {
      mkdirSync(group)
      writeFileSync(join(group, limit), String(BYTES))
      return group
    } catch {
      // Not permitted; the other version may be.
    }
  }
  process.stderr.write('No control group can be made here: the test of a small memory is skipped\n')
  return undefined
}

const group = makeGroup()

describe.runIf(group !== undefined)('in 512 MB', () => {
  const dataDir = makeFolder()
  let server: Awaited<ReturnType<typeof startServer>>
  let keys: readonly string[] = []

  beforeAll(async () => {
    const first = await startNightly(dataDir, 'run', '--with-sample', '--as-of', '2026-09-01T02:00:00Z').ended
    expect(first.code).toBe(0)
    const upstream = await startUpstream({ m: json(completion()) })
    const MODELS_FILE = writeModels(dataDir, { 'a/b': [{ base_url: upstream.url, model: 'm' }] })
    const environment = { DATA_DIR: dataDir, MODELS_FILE }
    keys = [await makeKey(environment), await makeKey(environment), await makeKey(environment)]
    const inGroup = ['sh', '-c', `echo $$ > ${group}/cgroup.procs && exec "$0" "$@"`]
    server = await startServer(environment, inGroup)
  }, LONG.timeout)
  afterAll(async () => {
    await server.stop()
    if (group !== undefined) rmdirSync(group)
  })

  const chat = async (key: string, body: string | Uint8Array<ArrayBuffer>) => {
    const headers = typeof body === 'string' ? {} : { 'Content-Encoding': 'gzip' }
    const reply = await server.get('/chat/completions', key, { method: 'POST', headers, body })
    await reply.arrayBuffer()
    return reply.status
  }
  const asking = (content: unknown) => JSON.stringify({ model: 'a/b', messages: [{ role: 'user', content }] })
  // One character beyond Latin-1 doubles the memory of a text.
  const text = (bytes: number) => asking(`it’s ${'x'.repeat(bytes)}`)

  const packed = (body: string) => new Uint8Array(gzipSync(body))
  const PACKED = packed(text(9_000_000))
  const MILLION = asking(Array.from({ length: 1_000_000 }, () => 1))

  it.each<[string, string | Uint8Array<ArrayBuffer>, number, readonly number[]]>([
    ['six bodies at once of 9 MB of text are answered', text(9_000_000), 1, [200]],
    ['six bodies at once of a million values are refused', packed(MILLION), 1, [413, 503]],
    // A compressed body takes the place of the largest one until it is read.
    ['six that unpack to a thousand times their size are answered or wait', PACKED, 1, [200, 503]],
    ['18 bodies at once of three keys are answered or wait for room', text(9_000_000), 3, [200, 503]],
    ['18 of the largest bodies at once are answered or wait for room', text(31_000_000), 3, [200, 503]],
  ])('%s', LONG, async (_name, body, senders, statuses) => {
    for (let round = 1; round <= 3; round += 1) {
      const replies = await Promise.all(
        keys.slice(0, senders).flatMap((key) => Array.from({ length: 6 }, () => chat(key, body))),
      )
      expect(statuses).toEqual(expect.arrayContaining(replies))
      // Those that find room are answered.
      expect(replies).toContain(statuses[0])
    }
  })

  it('rankings are served at the same time, and the process never restarts', async () => {
    const days = Array.from({ length: 24 }, (_, day) => `2026-08-${String(day + 1).padStart(2, '0')}`)
    const asked = days.map((day) => fetch(`${server.origin}/rankings.csv?start_date=${day}&sort=trending`))
    for (const reply of await Promise.all(asked)) {
      await reply.arrayBuffer()
      expect(reply.status).toBe(200)
    }
    expect(server.child.exitCode).toBeNull()
    expect((await fetch(`${server.origin}/readyz`)).status).toBe(200)
  })
})
