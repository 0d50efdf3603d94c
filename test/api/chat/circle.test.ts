/** CONTRACT 6 and 7: the closed circle: today's chat requests are in tomorrow's rankings, to the token. */
import { appendFileSync, readFileSync } from 'node:fs'
import OpenAI, { BadRequestError, InternalServerError } from 'openai'
import { expect, it } from 'vitest'
import { rankingsSchema, until } from '../../support/api.ts'
import { MESSAGES, startScriptedChat, usageFiles } from '../../support/chat/chat.ts'
import {
  chunksOf,
  completion,
  either,
  endsWith,
  json,
  status,
  type Behaviour,
} from '../../support/chat/upstream.ts'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'

const NEXT_NIGHT = '2026-03-11T02:00:00Z'
/** Names are any text. */
const MODEL = 'acme/small,"😀"'

/** A provider that reports other tokens with each reply, and their sum. */
function startReporting() {
  const reported = { requests: 0, tokens: 0 }
  const behaviour: Behaviour = (...given) => {
    reported.requests += 1
    const usage = { prompt_tokens: 100 + reported.requests, completion_tokens: 7 * reported.requests }
    reported.tokens += usage.prompt_tokens + usage.completion_tokens
    return either(json({ ...completion(), usage }), endsWith(...chunksOf(['Hel', 'lo'], usage)))(...given)
  }
  return { reported, behaviour }
}

it('requests of two apps are in the rankings of the next day, with the exact totals of the provider', async () => {
  const { reported, behaviour } = startReporting()
  await using chat = await startScriptedChat({
    behaviours: { up: behaviour, down: status(503), mute: json({ ...completion(), usage: undefined }) },
    models: {
      [MODEL]: ['down', 'up'].map((model) => ({ name: model, model })),
      'acme/broken': [{ model: 'down' }],
      'acme/mute': [{ model: 'mute' }],
    },
  })
  const { api } = chat
  const client = (defaultHeaders = {}) =>
    new OpenAI({ baseURL: api.base, apiKey: api.key, maxRetries: 0, defaultHeaders }).chat.completions
  const app = (address: string, title: string, categories = '') =>
    client({ 'HTTP-Referer': address, 'X-Title': title, 'X-App-Categories': categories })
  const diary = app('https://diary.example/', 'Diary', 'writing-assistant')
  const coder = app('https://coder.example', 'Coder', 'cli-agent,ide-extension')
  const request = { model: MODEL, messages: [...MESSAGES] }

  const totals = { Coder: { requests: 0, tokens: 0 }, Diary: { requests: 0, tokens: 0 } }
  const count = (name: keyof typeof totals, tokens = Number.NaN) => {
    totals[name].requests += 1
    totals[name].tokens += tokens
  }
  for (let round = 0; round < 5; round++) {
    count('Coder', (await coder.create(request)).usage?.total_tokens)
    count('Coder', (await coder.stream(request).totalUsage()).total_tokens)
  }
  count('Diary', (await diary.create(request)).usage?.total_tokens)
  expect(totals.Coder.tokens + totals.Diary.tokens).toBe(reported.tokens)
  // A request with unknown tokens is a request, one that was not served is none.
  count('Diary', (await diary.create({ ...request, model: 'acme/mute' })).usage?.total_tokens)
  await expect(diary.create({ ...request, model: 'acme/broken' })).rejects.toThrow(InternalServerError)
  // An app without a served request is not in the dataset, and requests without an app are not ranked.
  const spam = app('https://spam.example', 'Buy cheap', 'game')
  await expect(spam.create({ ...request, model: 'acme/broken' })).rejects.toThrow(InternalServerError)
  await expect(spam.create({ ...request, messages: [] })).rejects.toThrow(BadRequestError)
  await client().create(request)
  // A repeated record counts once.
  const [file = ''] = usageFiles(api.dataDir)
  const [line = ''] = readFileSync(file, 'utf8').split('\n')
  appendFileSync(file, `${line}\n`)

  const report = await runAt(api.dataDir, NEXT_NIGHT)
  expect(await queryWarehouse(api.dataDir, 'SELECT file, row, reason FROM quarantine')).toEqual([])
  expect(fact(report, 'load', 'rows_without_tokens')).toBe(4)
  expect(fact(report, 'load', 'rows_failed_without_tokens')).toBe(3)
  expect(fact(report, 'load', 'rows_duplicate')).toBe(1)
  const rankings = await until(async () => {
    const response = await api.get('/datasets/app-rankings', api.key)
    return response.status === 200 && rankingsSchema.parse(await response.json())
  })
  expect(rankings.meta.end_date).toBe('2026-03-10')
  expect(rankings.data).toMatchObject(
    Object.entries(totals).map(([app_name, { requests, tokens }]) => ({
      app_name,
      total_requests: requests,
      total_tokens: String(tokens),
    })),
  )
  const tagged = await api.get('/datasets/app-rankings?subcategory=writing-assistant', api.key)
  expect(rankingsSchema.parse(await tagged.json()).data.map(({ app_name }) => app_name)).toEqual(['Diary'])
})
