/** CONTRACT 4.6: the metrics and the log of replies. */
import { afterAll, describe, expect, it } from 'vitest'
import { startApi, until } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

describe('the log', () => {
  it('logs the caller, the request and the outcome of each request', async () => {
    await using api = await startApi(folders.make())
    const key = await api.makeKey()
    await fetch(`${api.origin}/healthz`)
    const response = await api.get('/datasets/app-rankings?limit=5', key)
    const requestId = response.headers.get('X-Request-Id')
    // Balancers poll /healthz all the time.
    const line = await until(() => api.messages().find((entry) => entry['msg'] === 'request'))
    expect(line).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      msg: 'request',
      request_id: requestId,
      method: 'GET',
      path: '/api/v1/datasets/app-rankings',
      status: 503,
      ms: expect.any(Number),
      account_id: expect.stringMatching(/^[\da-f-]{36}$/),
      key_id: expect.stringMatching(/^[\da-f-]{36}$/),
    })
  })

  it('gives each request its own id, whatever the client sends', async () => {
    await using api = await startApi(folders.make())
    const ask = () => api.get('/status', undefined, { headers: { 'X-Request-Id': 'mine' } })
    const ids = (await Promise.all([ask(), ask()])).map((response) => response.headers.get('X-Request-Id'))
    expect(new Set([...ids, 'mine']).size).toBe(3)
  })
})
