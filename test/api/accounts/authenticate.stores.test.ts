/** CONTRACT 2: which credentials each operation takes, on both stores. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import express from 'express'
import { createApp } from '../../../api/http/app.ts'
import { makeKey } from '../../../api/accounts/credentials.ts'
import { createKey, listKeys, revokeKey } from '../../../api/accounts/key-store.ts'
import { HTTP_LIMITS, listen, type HttpServer } from '../../../api/http/server.ts'
import { Registry } from 'prom-client'
import { openStore } from '../../../api/store/open-store.ts'
import type { Route } from '../../../api/http/route.ts'
import type { Store } from '../../../api/store/store.ts'
import { envelopeSchema, memoryLog } from '../../support/api.ts'
import { TestStores } from '../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const now = new Date()
const ACCESSES = ['open', 'any', 'inference', 'management'] as const
const routes: readonly Route[] = ACCESSES.map((access) => ({
  method: 'GET',
  path: `/${access}`,
  access,
  handle: (_request, reply) => void reply.json({ account: reply.locals.caller?.accountId ?? null }),
}))

describe.each(stores.kinds)('on $name', ({ fresh }) => {
  let store: Store
  let elsewhere: Store
  let server: HttpServer

  beforeAll(async () => {
    const settings = await fresh()
    store = await openStore(settings, now)
    elsewhere = await openStore(settings, now)
    const { log } = memoryLog()
    const metrics = new Registry()
    const app = express().use(createApp({ routes, store, clock: () => now, log, stallMs: 60_000, metrics }))
    server = await listen(app, { host: '127.0.0.1', port: 0, log, limits: HTTP_LIMITS })
  })

  afterAll(async () => {
    await server.close()
    await Promise.all([store.close(), elsewhere.close()])
  })

  function get(path: string, authorization?: string): Promise<Response> {
    return fetch(`${server.origin}${path}`, authorization ? { headers: { authorization } } : {})
  }

  async function refusal(path: string, authorization?: string) {
    const response = await get(path, authorization)
    expect(response.status).toBe(401)
    expect(response.headers.get('WWW-Authenticate')).toBe('Bearer')
    const body = envelopeSchema.parse(await response.json())
    expect(body.error.code).toBe(401)
    return { message: body.error.message, userId: body.user_id }
  }

  describe('authenticate', () => {
    it.each([
      ['inference', ['open', 'any', 'inference'], ['management']],
      ['management', ['open', 'any', 'management'], ['inference']],
    ] as const)('accepts a key of kind %s on its routes', async (kind, fitting, others) => {
      const key = await createKey(store, { account: 'acme', kind, now })
      for (const access of fitting) expect((await get(`/${access}`, `Bearer ${key}`)).status).toBe(200)
      for (const access of others) {
        const { message, userId } = await refusal(`/${access}`, `Bearer ${key}`)
        expect(message).toContain(`of kind ${access}`)
        expect(userId).not.toBeNull()
      }
    })

    it('takes the scheme in any case', async () => {
      const key = await createKey(store, { account: 'acme', kind: 'inference', now })
      for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
        expect((await get('/any', `${scheme} ${key}`)).status).toBe(200)
      }
    })

    it('ignores credentials on open routes', async () => {
      expect((await get('/open', 'nonsense')).status).toBe(200)
    })

    it('sees at once what another process did to a key', async () => {
      const key = await createKey(elsewhere, { account: 'moved', kind: 'inference', now })
      for (let request = 0; request < 3; request++) {
        expect((await get('/any', `Bearer ${key}`)).status).toBe(200)
      }
      const id = (await listKeys(elsewhere)).find(({ account }) => account === 'moved')?.id ?? ''
      await revokeKey(elsewhere, id, now)
      expect((await refusal('/any', `Bearer ${key}`)).message).toBe('This key was revoked')
    })

    it('rejects missing, malformed, unknown and revoked credentials with different messages', async () => {
      const revoked = await createKey(store, { account: 'gone', kind: 'inference', now })
      const id = (await listKeys(store)).find((key) => key.account === 'gone')?.id ?? ''
      expect((await get('/any', `Bearer ${revoked}`)).status).toBe(200)
      expect(await revokeKey(store, id, now)).toBe(true)

      const refusals = await Promise.all([
        refusal('/any'),
        refusal('/any', 'Basic dTpw'),
        refusal('/any', 'Bearer not-a-key'),
        refusal('/any', `Bearer ${makeKey('inference')}`),
        refusal('/any', `Bearer ${revoked}`),
      ])
      expect(new Set(refusals.map(({ message }) => message)).size).toBe(refusals.length)
      for (const { message, userId } of refusals) {
        expect(message).not.toContain('sk-')
        expect(userId).toBeNull()
      }
    })
  })
})
