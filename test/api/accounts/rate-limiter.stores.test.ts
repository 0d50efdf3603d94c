/** CONTRACT 4.5 and 6: limits of requests and tokens, exact over restarts and servers, on both stores. */
import { describe, expect, it } from 'vitest'
import { keys } from '../../../api/commands/keys.ts'
import { envelopeSchema, startApi, until } from '../../support/api.ts'
import { MESSAGES, startScriptedChat } from '../../support/chat/chat.ts'
import { completion, json } from '../../support/chat/upstream.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'
import { runCommandLine } from '../../support/processes.ts'
import { asEnvironment, stores } from '../../support/stores.ts'

const NOON = new Date('2026-11-20T12:00:00Z')
const after = (time: Date, seconds: number) => new Date(time.getTime() + seconds * 1000)

/** What a reply states: the rest of minute and day, the seconds until both end, and the exhausted limit. */
async function read(response: Response) {
  const fields = [...(response.headers.get('RateLimit') ?? '').matchAll(/;r=(\d+);t=(\d+)/g)]
  const { metadata } =
    response.status === 429 ? envelopeSchema.parse(await response.json()).error : { metadata: null }
  await response.body?.cancel().catch(() => undefined)
  return {
    left: fields.map(([, rest]) => Number(rest)),
    waits: fields.map(([, , seconds]) => Number(seconds)),
    exhausted: metadata?.['policy'],
    retryAfter: response.headers.get('Retry-After'),
  }
}

describe.each(stores.kinds)('on $name', ({ fresh }) => {
  /** Services over one dataset and one store, with a common clock that `at` moves. */
  async function startServices() {
    const settings = await fresh()
    await publishSnapshot(settings.DATA_DIR, oneApp())
    let now = NOON
    const options = { clock: () => now, environment: asEnvironment(settings) }
    const start = () => startApi(settings.DATA_DIR, options)
    const first = await start()
    const at = (time: Date) => void (now = time)
    const ask = async (key: string, { service = first, method = 'GET' } = {}) =>
      await read(await service.get('/datasets/app-rankings', key, { method }))
    /** Uses up `count` requests of the day of an account, each key within its minute. */
    const useDay = async (count: number, account: string) => {
      for (let taken = 0; taken < count; taken += 30) {
        const key = await first.makeKey('inference', account)
        const replies = Array.from({ length: Math.min(30, count - taken) }, () => ask(key))
        for (const { exhausted } of await Promise.all(replies)) expect(exhausted).toBeUndefined()
      }
    }
    return { first, start, at, ask, useDay }
  }

  it('30 requests of a key pass in a minute and count for its account, and 30 more in the next minute', async () => {
    const { ask, at, first } = await startServices()
    const key = await first.makeKey()
    expect(await ask(key, { method: 'HEAD' })).toMatchObject({ left: [30, 500], waits: [60, 43_200] })
    for (let taken = 1; taken <= 30; taken += 1) {
      at(after(NOON, taken))
      const stated = { left: [30 - taken, 500 - taken], waits: [60 - taken, 43_200 - taken] }
      expect(await ask(key)).toMatchObject(stated)
    }
    at(after(NOON, 59.5))
    expect(await ask(key)).toMatchObject({ left: [0, 470], exhausted: 'per-minute', retryAfter: '1' })
    // The rejected request counts against neither limit, nor do requests of other accounts.
    expect(await ask(await first.makeKey())).toMatchObject({ left: [29, 469] })
    expect(await ask(await first.makeKey('inference', 'other'))).toMatchObject({ left: [29, 499] })
    at(after(NOON, 60))
    expect(await ask(key)).toMatchObject({ left: [29, 468], waits: [60, 43_140] })
  })

  it('500 requests of an account pass in a UTC day, and again from midnight on', async () => {
    const { ask, at, first, start, useDay } = await startServices()
    const key = await first.makeKey()
    for (let taken = 0; taken < 30; taken += 1) await ask(key)
    await useDay(470, 'test')
    // A server that starts counts on.
    const service = await start()
    const unused = await first.makeKey()
    at(after(NOON, 1))
    const refused = { left: [30, 0], exhausted: 'per-day', retryAfter: '43199' }
    expect(await ask(unused, { service })).toMatchObject(refused)
    // Of two exhausted limits the one with the longer wait is named.
    expect(await ask(key, { service })).toMatchObject({ left: [0, 0], exhausted: 'per-day' })
    at(new Date('2026-11-20T23:59:59.999Z'))
    expect(await ask(unused)).toMatchObject({ exhausted: 'per-day', retryAfter: '1' })
    at(new Date('2026-11-21T00:00:00Z'))
    expect(await ask(unused)).toMatchObject({ left: [29, 499], waits: [60, 86_400] })
  })

  it('each minute and day is counted exactly if the clocks of servers differ', async () => {
    const { ask, at, first } = await startServices()
    const key = await first.makeKey()
    for (let taken = 0; taken < 30; taken += 1) await ask(key)
    for (const [seconds, stated] of [
      [-1, { left: [29, 469] }],
      [1, { left: [0, 469], exhausted: 'per-minute' }],
      [-86_400, { left: [29, 499] }],
    ] as const) {
      at(after(NOON, seconds))
      expect(await ask(key)).toMatchObject(stated)
    }
  })

  it('of simultaneous requests to several servers exactly 30 pass, and the last place of a day is given once', async () => {
    const { ask, first, start, useDay } = await startServices()
    const both = [first, await start()] as const
    const passed = async (callers: readonly string[]) => {
      const asked = callers.map((key, index) => ask(key, { service: both[index % 2 ? 1 : 0] }))
      return (await Promise.all(asked)).filter(({ exhausted }) => exhausted === undefined).length
    }
    const key = await first.makeKey()
    expect(await passed(Array.from({ length: 100 }, () => key))).toBe(30)
    const late = await Promise.all(Array.from({ length: 20 }, () => first.makeKey()))
    expect(await ask(late[0] ?? '', { method: 'HEAD' })).toMatchObject({ left: [30, 470] })
    await useDay(469, 'test')
    expect(await passed(late)).toBe(1)
  })

  it('counts of past windows are deleted', async () => {
    const { ask, at, first } = await startServices()
    const key = await first.makeKey()
    for (const minutes of [0, 1, 10]) {
      at(after(NOON, 60 * minutes))
      await ask(key)
    }
    await until(async () => {
      const rows = await first.store.query("SELECT used FROM quotas WHERE policy = 'per-minute'")
      return rows.length === 1
    })
  })

  it('chat with a key that has limits is 429 with the name of the limit once it is used up, and 401 after the expiry', async () => {
    let now = NOON
    const environment = asEnvironment(await fresh())
    await using chat = await startScriptedChat({ clock: () => now, environment })
    const ask = () => chat.api.post({ model: 'a/one', messages: MESSAGES })
    const statuses = async (count: number) =>
      (await Promise.all(Array.from({ length: count }, ask)))
        .map(({ status }) => status)
        .toSorted((one, other) => one - other)
    const command = (...args: string[]) => runCommandLine(keys, args, environment)
    const [id = ''] = /^[\da-f]{8}-[\da-f-]{27}/m.exec((await command('list')).stdout) ?? []
    const tokens = 3_000_000_000
    const usage = { prompt_tokens: tokens, completion_tokens: tokens, total_tokens: 2 * tokens }
    chat.script(json({ ...completion(), usage }))

    await command('limit', id, '--requests-per-minute', '5')
    expect(await statuses(20)).toEqual([...Array(5).fill(200), ...Array(15).fill(429)])
    const refused = await ask()
    expect(refused.headers.get('Retry-After')).toBe('60')
    expect(refused.headers.get('RateLimit')).toBe('"key-requests-per-minute";r=0;t=60')
    expect(await refused.json()).toMatchObject({
      error: { metadata: { error_type: 'rate_limit_exceeded', policy: 'key-requests-per-minute', limit: 5 } },
    })
    now = after(NOON, 60)
    expect(await statuses(1)).toEqual([200])

    // What was answered before the limit existed is not counted.
    await command('limit', id, '--requests-per-minute', 'off', '--tokens-per-day', '6000000001')
    expect([await statuses(1), await statuses(1)]).toEqual([[200], [200]])
    now = new Date('2026-11-20T23:59:50Z')
    // Tokens are counted after the reply.
    const spent = await until(async () => {
      const reply = await ask()
      return reply.status === 429 && reply
    })
    expect(spent.headers.get('Retry-After')).toBe('10')
    expect(await spent.json()).toMatchObject({ error: { metadata: { policy: 'key-tokens-per-day' } } })
    now = new Date('2026-11-21T00:00:00Z')
    expect(await statuses(1)).toEqual([200])

    await command('limit', id, '--tokens-per-day', 'off', '--expires', '2026-11-22')
    now = new Date('2026-11-21T23:59:59.999Z')
    expect(await statuses(1)).toEqual([200])
    now = new Date('2026-11-22T00:00:00Z')
    const late = await ask()
    expect([late.status, await late.text()]).toEqual([
      401,
      expect.stringContaining('This key expired at 2026-11-22T00:00:00.000Z'),
    ])
  })
})
