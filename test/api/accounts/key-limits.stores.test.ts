/** CONTRACT 6: the limits of a single key, requests a minute and tokens a UTC day. */
import { afterAll, describe, expect, it } from 'vitest'
import { createKeyLimits, createRateLimiter } from '../../../api/accounts/rate-limiter.ts'
import type { Caller } from '../../../api/http/call.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import { limitKey, listKeys } from '../../../api/accounts/key-store.ts'
import { MESSAGES, startScriptedChat } from '../../support/chat/chat.ts'
import { completion, json } from '../../support/chat/upstream.ts'
import { memoryLog } from '../../support/api.ts'
import { TestStores } from '../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

function keyWith(requestsPerMinute: number | null, tokensPerDay: number | null): Caller {
  return { keyId: 'key', accountId: 'a', kind: 'inference', limits: { requestsPerMinute, tokensPerDay } }
}

describe.each(stores.kinds)('the limits of a key on $name', ({ fresh }) => {
  async function openLimits(settings: StoreSettings, clock: () => Date) {
    const store = await openStore(settings, clock())
    const limits = createKeyLimits(createRateLimiter(store), clock, memoryLog().log)
    return { ...limits, store, [Symbol.asyncDispose]: () => store.close() }
  }

  it('allow the requests of a minute in all servers together, and the next minute again', async () => {
    let now = new Date('2026-11-20T12:00:00Z')
    const settings = await fresh()
    await using first = await openLimits(settings, () => now)
    await using second = await openLimits(settings, () => now)
    const key = keyWith(5, null)
    const sent = Array.from({ length: 20 }, (_, index) => (index % 2 ? first : second).begin(key))
    const refused = (await Promise.allSettled(sent)).filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(15)
    await expect(first.begin(key)).rejects.toMatchObject({
      status: 429,
      headers: { 'Retry-After': '60' },
      metadata: { policy: 'key-requests-per-minute', limit: 5 },
    })
    now = new Date('2026-11-20T12:01:00Z')
    await first.begin(key)
  })

  it('end once the tokens of a UTC day are used, and begin anew at midnight', async () => {
    let now = new Date('2026-11-20T23:59:50Z')
    const settings = await fresh()
    await using first = await openLimits(settings, () => now)
    const key = keyWith(null, 5_000_000_000)
    await Promise.all([first.spend(key, 4_000_000_000), first.spend(key, 999_999_999)])
    await first.begin(key)
    await first.spend(key, 3_000_000_000)
    await using second = await openLimits(settings, () => now)
    await expect(second.begin(key)).rejects.toMatchObject({
      status: 429,
      headers: { 'Retry-After': '10' },
      metadata: { policy: 'key-tokens-per-day' },
    })
    now = new Date('2026-11-21T00:00:00Z')
    await second.begin(key)
  })

  it('do not exist by default', async () => {
    await using limits = await openLimits(await fresh(), () => new Date())
    const { limits: _, ...unlimited } = keyWith(null, null)
    for (const key of [keyWith(null, null), unlimited]) {
      await limits.begin(key)
      await limits.spend(key, 1000)
    }
    expect(await limits.store.query('SELECT policy FROM quotas')).toEqual([])
  })
})

stores.describeOnce('chat with a key that has limits', () => {
  it('is 429 with the name of the limit once requests or tokens are used, and 401 after the expiry', async () => {
    let now = new Date('2026-11-20T12:00:00Z')
    await using chat = await startScriptedChat({ clock: () => now })
    chat.script(json(completion()))
    const { store: service } = chat.api
    const id = (await listKeys(service))[0]?.id ?? ''
    const ask = () => chat.api.post({ model: 'a/one', messages: MESSAGES })
    await limitKey(service, id, { requestsPerMinute: 2 })
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 200])
    const third = await ask()
    expect(third.status).toBe(429)
    expect(third.headers.get('Retry-After')).toBe('60')
    expect(await third.json()).toMatchObject({
      error: { metadata: { error_type: 'rate_limit_exceeded', policy: 'key-requests-per-minute', limit: 2 } },
    })

    await limitKey(service, id, { requestsPerMinute: null, tokensPerDay: 5 })
    // What was answered before the limit existed is not counted.
    expect((await ask()).status).toBe(200)
    const spent = await ask()
    expect(spent.status).toBe(429)
    expect(await spent.json()).toMatchObject({ error: { metadata: { policy: 'key-tokens-per-day' } } })

    await limitKey(service, id, { tokensPerDay: null, expires: new Date('2026-11-21T00:00:00Z') })
    now = new Date('2026-11-20T23:59:59.999Z')
    expect((await ask()).status).toBe(200)
    now = new Date('2026-11-21T00:00:00Z')
    const late = await ask()
    expect(late.status).toBe(401)
    expect(await late.text()).toContain('This key expired at 2026-11-21T00:00:00.000Z')
  })
})
