/** CONTRACT 2 and 4.5: a key is looked up, and a request counted, whoever writes into the store meanwhile, and whoever dies. */
import { describe, expect, it } from 'vitest'
import { keys } from '../../../api/commands/keys.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { UNKNOWN_KEY, makeKey, startApi, startServer } from '../../support/api.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'
import { runCommandLine } from '../../support/processes.ts'
import { asEnvironment, stores } from '../../support/stores.ts'

const RANKINGS = '/datasets/app-rankings'

describe.each(stores.kinds)('while another process holds the write lock on $name', ({ name, fresh }) => {
  it('requests and commands that only read are answered, and counted requests get 503 until it lets go', async () => {
    const settings = await fresh()
    await publishSnapshot(settings.DATA_DIR, oneApp())
    await using api = await startApi(settings.DATA_DIR, { environment: asEnvironment(settings) })
    const [key, manager] = [await api.makeKey(), await api.makeKey('management')]
    const other = await openStore(settings, new Date())
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
    const { promise: holds, resolve: hold } = Promise.withResolvers<void>()
    const writing = other.transaction(async (queries) => {
      if (name === 'PostgreSQL') await queries.query('LOCK TABLE quotas IN EXCLUSIVE MODE')
      hold()
      await mayEnd
    })
    await holds

    const counted = api.get(RANKINGS, key)
    expect((await api.get('/scim/groups', manager)).status).toBe(200)
    expect((await api.get(RANKINGS, key, { method: 'HEAD' })).status).toBe(200)
    expect((await api.get(RANKINGS, UNKNOWN_KEY)).status).toBe(401)
    const refused = await counted
    expect(refused.status).toBe(503)
    expect(refused.headers.get('Retry-After')).toBe('2')
    const listed = await runCommandLine(keys, ['list'], asEnvironment(settings))
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(key.slice(-4)) as unknown })

    end()
    await writing
    await other.close()
    // A request that was answered 503 is not counted afterwards either.
    const limits = (await api.get(RANKINGS, key)).headers.get('RateLimit')
    expect(limits).toMatch(/"per-minute";r=29;.*"per-day";r=499;/)
  })
})

describe.each(stores.kinds)('two processes on $name', ({ fresh }) => {
  it('count exactly, also when one is killed and another takes its place', async () => {
    const settings = await fresh()
    await publishSnapshot(settings.DATA_DIR, oneApp())
    const environment = asEnvironment(settings)
    const key = await makeKey(environment)
    const [kept, killed] = await Promise.all([startServer(environment), startServer(environment)])
    /** Ten requests to each of the servers: their statuses, and what the last one left of the day. */
    const ask = async (servers: readonly { readonly origin: string }[]) => {
      const headers = { Authorization: `Bearer ${key}` }
      const asked = servers.flatMap(({ origin }) =>
        Array.from({ length: 10 }, () => fetch(`${origin}/api/v1${RANKINGS}`, { headers })),
      )
      const replies = await Promise.all(asked)
      const rests = replies.map((reply) =>
        Number(/"per-day";r=(\d+)/.exec(reply.headers.get('RateLimit') ?? '')?.[1]),
      )
      return { passed: replies.filter(({ status }) => status === 200).length, rest: Math.min(...rests) }
    }
    const minute = () => Math.floor(Date.now() / 60_000)
    const began = minute()
    const first = await ask([kept, killed])
    expect(first).toEqual({ passed: 20, rest: 480 })
    killed.child.kill('SIGKILL')
    await killed.ended
    const next = await startServer(environment)
    const later = await ask([kept, next])
    // On a slow machine the minute may end meanwhile; the day counts all the same.
    if (minute() === began) expect(later.passed).toBe(10)
    expect(later.rest).toBe(480 - later.passed)
    for (const { child, ended } of [kept, next]) {
      child.kill('SIGTERM')
      await ended
    }
  })
})
