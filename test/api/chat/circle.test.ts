/** CONTRACT 6: the closed circle: today's chat requests are in tomorrow's rankings, to the token. */
import OpenAI from 'openai'
import { afterAll, expect, it } from 'vitest'
import { rankingsSchema, until } from '../../support/api.ts'
import { MESSAGES, startChat } from '../../support/chat/chat.ts'
import { publish, TemporaryFolders } from '../../support/pipeline/nightly.ts'
import {
  chunk,
  chunksOf,
  completion,
  json,
  sse,
  startUpstream,
  status,
  stream,
} from '../../support/chat/upstream.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const DAY = '2026-03-10'
const NEXT_NIGHT = '2026-03-11T02:00:00Z'

it('requests of two apps are in the rankings of the next day, with the exact totals of the provider', async () => {
  const reported = { prompt: 0, completion: 0, requests: 0 }
  const usage = () => {
    reported.requests += 1
    const one = { prompt_tokens: 100 + reported.requests, completion_tokens: 7 * reported.requests }
    reported.prompt += one.prompt_tokens
    reported.completion += one.completion_tokens
    return one
  }
  await using upstream = await startUpstream({
    down: status(503),
    up: (response, received) =>
      received.body.stream === true
        ? stream(sse([...chunksOf(['Hel', 'lo'], null), { ...chunk({}), choices: [], usage: usage() }]))(
            response,
            received,
          )
        : json({ ...completion(), usage: usage() })(response, received),
  })
  await using api = await startChat(
    folders,
    {
      'acme/small': [
        { name: 'alpha', base_url: upstream.url, model: 'down' },
        { name: 'beta', base_url: upstream.url, model: 'up' },
      ],
      'acme/broken': [{ base_url: upstream.url, model: 'down' }],
    },
    { clock: () => new Date(`${DAY}T12:00:00Z`) },
  )
  const client = (address: string, title: string, categories = '') =>
    new OpenAI({
      baseURL: api.base,
      apiKey: api.key,
      maxRetries: 0,
      defaultHeaders: { 'HTTP-Referer': address, 'X-Title': title, 'X-App-Categories': categories },
    })
  const diary = client('https://diary.example/', 'Diary', 'writing-assistant')
  const coder = client('https://coder.example', 'Coder', 'cli-agent,ide-extension')

  const request = { model: 'acme/small', messages: [...MESSAGES] }
  const totals = new Map<string, { requests: number; tokens: number }>()
  const count = (app: string, tokens: number | undefined) => {
    const { requests, tokens: before } = totals.get(app) ?? { requests: 0, tokens: 0 }
    totals.set(app, { requests: requests + 1, tokens: before + (tokens ?? Number.NaN) })
  }
  for (let round = 0; round < 5; round++) {
    count('Coder', (await coder.chat.completions.create(request)).usage?.total_tokens)
    count('Coder', (await coder.chat.completions.stream(request).totalUsage()).total_tokens)
  }
  count('Diary', (await diary.chat.completions.create(request)).usage?.total_tokens)
  await expect(diary.chat.completions.create({ ...request, model: 'acme/broken' })).rejects.toThrow('502')
  // An app without a served request is not in the dataset.
  const spam = client('https://spam.example', 'Buy cheap', 'game')
  await expect(spam.chat.completions.create({ ...request, model: 'acme/broken' })).rejects.toThrow('502')
  await expect(spam.chat.completions.create({ ...request, messages: [] })).rejects.toThrow('400')

  await publish(api.dataDir, NEXT_NIGHT)
  const rankings = await until(async () => {
    const response = await api.get('/datasets/app-rankings', api.key)
    return response.status === 200 && rankingsSchema.parse(await response.json())
  })
  expect(rankings.meta.end_date).toBe(DAY)
  expect(
    rankings.data.map(({ app_name, total_requests, total_tokens }) => ({
      app_name,
      total_requests,
      total_tokens,
    })),
  ).toEqual(
    ['Coder', 'Diary'].map((app_name) => ({
      app_name,
      total_requests: totals.get(app_name)?.requests,
      total_tokens: String(totals.get(app_name)?.tokens),
    })),
  )
  const all = [...totals.values()].reduce((sum, { tokens }) => sum + tokens, 0)
  expect(all).toBe(reported.prompt + reported.completion)
  const tagged = await api.get('/datasets/app-rankings?subcategory=writing-assistant', api.key)
  expect(rankingsSchema.parse(await tagged.json()).data.map(({ app_name }) => app_name)).toEqual(['Diary'])
})
