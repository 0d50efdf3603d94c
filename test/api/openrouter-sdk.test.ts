/** CONTRACT 3 and 4.3: the official client reads rankings, models by day, and errors. */
import { OpenRouter } from '@openrouter/sdk'
import {
  BadRequestResponseError,
  TooManyRequestsResponseError,
  UnauthorizedResponseError,
} from '@openrouter/sdk/models/errors'
import { beforeAll, describe, expect, it } from 'vitest'
import { UNKNOWN_KEY, startApi, type Api } from '../support/api.ts'
import { makeFolder } from '../support/folders.ts'
import { publishSnapshot } from '../support/pipeline/snapshot.ts'

const APPS = 120
const LAST_DAY = '2026-11-19'

let api: Api

beforeAll(async () => {
  const dataDir = makeFolder()
  const ids = Array.from({ length: APPS }, (_, index) => index + 1)
  await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: LAST_DAY,
    apps: ids.map((id) => ({ id, name: `App ${id}`, tags: id % 2 ? ['game'] : ['cli-agent'] })),
    daily: [
      ...ids.map((app) => ({ day: LAST_DAY, app, tokens: 2n ** 62n - BigInt(app), completion: 2n ** 62n })),
      { day: '2026-10-01', app: 1, tokens: 2n ** 63n - 1n },
      { day: '2026-10-02', app: 1, tokens: 2n ** 63n - 1n },
      { day: '2026-10-03', app: 1, tokens: 2n ** 63n - 1n },
    ],
    models: [
      { day: LAST_DAY, model: 'acme/large', tokens: 2n ** 63n - 1n },
      { day: LAST_DAY, model: 'other', tokens: 5 },
    ],
  })
  // No minute ends between the requests of a test.
  api = await startApi(dataDir, { clock: () => new Date('2026-11-20T12:00:00Z') })
})

async function client(apiKey?: string) {
  return new OpenRouter({
    serverURL: api.base,
    apiKey: apiKey ?? (await api.makeKey('inference', crypto.randomUUID())),
    retryConfig: { strategy: 'none' },
  })
}

describe('the official client', () => {
  it('reads the popular rankings', async () => {
    const { result } = await (await client()).datasets.getAppRankings()
    expect(result.meta).toEqual({
      asOf: '2026-11-20T02:00:00Z',
      startDate: '2026-10-21',
      endDate: LAST_DAY,
      version: 'v1',
    })
    expect(result.data).toHaveLength(50)
    expect(result.data[0]).toEqual({
      appId: 1,
      appName: 'App 1',
      rank: 1,
      totalRequests: 1,
      totalTokens: String(2n ** 63n - 1n),
    })
  })

  it('reads the models by day', async () => {
    const { data, meta } = await (await client()).datasets.getRankingsDaily({ startDate: '2026-11-18' })
    expect(meta).toMatchObject({ startDate: '2026-11-18', endDate: LAST_DAY, version: 'v1' })
    expect(data).toEqual([
      { date: LAST_DAY, modelPermaslug: 'acme/large', totalTokens: String(2n ** 63n - 1n) },
      { date: LAST_DAY, modelPermaslug: 'other', totalTokens: '5' },
    ])
  })

  it.each([
    [{ sort: 'trending', limit: 1 }, [2]],
    [{ category: 'coding', limit: 2 }, [2, 4]],
    [{ subcategory: 'game', startDate: '2026-10-01', endDate: '2026-10-03' }, [1]],
  ] as const)('reads the rankings of %j', async (query, ids) => {
    const { result } = await (await client()).datasets.getAppRankings(query)
    expect(result.data.map((row) => row.appId)).toEqual(ids)
  })

  it('pages through all rows', async () => {
    const ranks: number[] = []
    for await (const page of await (await client()).datasets.getAppRankings({ limit: 50 })) {
      ranks.push(...page.result.data.map((row) => row.rank))
    }
    expect(ranks).toEqual(Array.from({ length: APPS }, (_, index) => index + 1))
  })

  it('turns a 400, 401 and 429 into its typed errors', async () => {
    const { datasets } = await client()
    const invalid = datasets.getAppRankings({ limit: 1000 })
    await expect(invalid).rejects.toBeInstanceOf(BadRequestResponseError)
    await expect(invalid).rejects.toMatchObject({
      error: {
        code: 400,
        message: expect.stringContaining('limit'),
        metadata: { parameters: [{ parameter: 'limit', sent: '1000' }] },
      },
      userId: expect.stringMatching(/^[\da-f-]{36}$/),
    })
    const unknown = (await client(UNKNOWN_KEY)).datasets.getAppRankings()
    await expect(unknown).rejects.toBeInstanceOf(UnauthorizedResponseError)
    await expect(unknown).rejects.toMatchObject({
      error: { code: 401, message: 'Unknown key: send a key of this service' },
    })

    for (let taken = 1; taken < 30; taken += 1) await datasets.getAppRankings({ limit: 1 })
    const eager = datasets.getAppRankings({ limit: 1 })
    await expect(eager).rejects.toBeInstanceOf(TooManyRequestsResponseError)
    await expect(eager).rejects.toMatchObject({ error: { code: 429, metadata: { policy: 'per-minute' } } })
  })
})
