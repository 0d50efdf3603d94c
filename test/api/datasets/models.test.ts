/** GET /datasets/rankings-daily (CONTRACT 4.6). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { envelopeSchema, startApi, type Api } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { publishSnapshot, type SnapshotContent } from '../../support/pipeline/snapshot.ts'

const PATH = '/datasets/rankings-daily'
const LAST_DAY = '2026-11-19'
const BEFORE = '2026-11-18'
const MANY_DAY = '2026-11-17'

const folders = new TemporaryFolders()

function slug(number: number): string {
  return `acme/model-${String(number).padStart(2, '0')}`
}

const CONTENT: SnapshotContent = {
  asOf: new Date('2026-11-20T02:00:00Z'),
  dataThrough: LAST_DAY,
  firstDay: '2025-01-01',
  apps: [],
  daily: [],
  models: [
    { day: LAST_DAY, model: 'zeta/one', tokens: 2n ** 63n - 1n },
    { day: LAST_DAY, model: 'acme/tied', tokens: 7 },
    { day: LAST_DAY, model: 'Zeta/tied', tokens: 7 },
    { day: LAST_DAY, model: 'acme/nothing', tokens: 0 },
    { day: LAST_DAY, model: 'acme/unserved', requests: 0, tokens: 3 },
    { day: LAST_DAY, model: 'other', tokens: 900 },
    { day: BEFORE, model: 'acme/alone', tokens: 5 },
    ...Array.from({ length: 53 }, (_, number) => ({
      day: MANY_DAY,
      model: slug(number),
      tokens: 100 - number,
    })),
    { day: MANY_DAY, model: 'other', tokens: 1 },
  ],
}

let api: Api

beforeAll(async () => {
  const dataDir = folders.make()
  await publishSnapshot(dataDir, CONTENT)
  api = await startApi(dataDir, { clock: () => CONTENT.asOf })
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

const ask = (query: string, init?: RequestInit) => api.getAsNewAccount(`${PATH}${query}`, init)

describe('the models by day', () => {
  it('have these bytes: by day, then tokens, ties in alphabetical order, and the rest of a day last', async () => {
    const response = await ask(`?start_date=${BEFORE}`)
    expect(response.status).toBe(200)
    const row = (date: string, model: string, tokens: string) =>
      `{"date":"${date}","model_permaslug":"${model}","total_tokens":"${tokens}"}`
    expect(await response.text()).toBe(
      `{"data":[${[
        row(BEFORE, 'acme/alone', '5'),
        row(LAST_DAY, 'zeta/one', '9223372036854775807'),
        row(LAST_DAY, 'Zeta/tied', '7'),
        row(LAST_DAY, 'acme/tied', '7'),
        row(LAST_DAY, 'acme/nothing', '0'),
        row(LAST_DAY, 'other', '903'),
      ].join(
        ',',
      )}],"meta":{"as_of":"2026-11-20T02:00:00Z","start_date":"${BEFORE}","end_date":"${LAST_DAY}","version":"v1"}}`,
    )
  })

  it('are at most 50 per day, and one row sums up the others', async () => {
    const response = await ask(`?start_date=${MANY_DAY}&end_date=${MANY_DAY}&format=csv`)
    const rows = (await response.text()).trimEnd().split('\n')
    expect(rows).toHaveLength(52)
    expect([rows[0], rows[1], rows[50], rows[51]]).toEqual([
      'date,model_permaslug,total_tokens',
      `${MANY_DAY},acme/model-00,100`,
      `${MANY_DAY},acme/model-49,51`,
      `${MANY_DAY},other,${50 + 49 + 48 + 1}`,
    ])
  })

  it('span by default the 30 days that end with the data, and clamp both dates', async () => {
    expect(await (await ask('')).json()).toMatchObject({
      data: { length: 51 + 6 },
      meta: { start_date: '2026-10-21', end_date: LAST_DAY },
    })
  })

  it.each([
    ['?limit=10', 'limit', 'is unknown'],
    ['?end_date=2024-12-31', 'end_date', '2025-01-01'],
    [`?start_date=${LAST_DAY}&end_date=${BEFORE}`, 'start_date', 'not after the end'],
    ['?start_date=2026-11-20', 'start_date', 'not after the end'],
  ])('reject %s with a message that names %s', async (query, parameter, words) => {
    const response = await ask(query)
    expect(response.status).toBe(400)
    const { error } = envelopeSchema.parse(await response.json())
    expect(error.message).toContain(`"${parameter}"`)
    expect(error.message).toContain(words)
  })

  it('need a key', async () => {
    expect((await api.get(PATH)).status).toBe(401)
  })
})
