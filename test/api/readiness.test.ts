/** CONTRACT 4.6: /readyz. */
import { afterAll, describe, expect, it } from 'vitest'
import { envelopeSchema, startApi, until, type Api } from '../support/api.ts'
import { TemporaryFolders } from '../support/pipeline/nightly.ts'
import { oneApp, publishSnapshot } from '../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const publish = (dataDir: string) => publishSnapshot(dataDir, oneApp())

async function reasons(api: Api): Promise<unknown> {
  const reply = await fetch(`${api.origin}/readyz`)
  if (reply.status === 200) return await reply.json()
  expect(reply.status).toBe(503)
  expect(Number(reply.headers.get('Retry-After'))).toBeGreaterThan(0)
  return envelopeSchema.parse(await reply.json()).error.metadata
}

it('the service is ready once a snapshot is open, and otherwise names the reason', async () => {
  const dataDir = folders.make()
  await using api = await startApi(dataDir)
  expect(await reasons(api)).toEqual({ reasons: ['no snapshot is open'] })
  await publish(dataDir)
  await until(async () => (await fetch(`${api.origin}/readyz`)).status === 200)
  expect(await reasons(api)).toEqual({ status: 'ready' })
})

describe('a service that stops', () => {
  const HOUR_MS = 3_600_000

  it('reports that to clients that poll readiness before its port closes, and answers others until then', async () => {
    const dataDir = folders.make()
    await publish(dataDir)
    const api = await startApi(dataDir, { limits: { unreadyMs: HOUR_MS } })
    expect(await reasons(api)).toEqual({ status: 'ready' })
    const closed = api.close()
    expect((await fetch(`${api.origin}/healthz`)).status).toBe(200)
    expect(await reasons(api)).toEqual({ reasons: ['the service is stopping'] })
    await closed
    await expect(fetch(`${api.origin}/healthz`)).rejects.toThrow()
  })

  it('closes its port at once if no client polled readiness', async () => {
    const api = await startApi(folders.make(), { limits: { unreadyMs: HOUR_MS } })
    await api.close()
    await expect(fetch(`${api.origin}/healthz`)).rejects.toThrow()
  })
})
