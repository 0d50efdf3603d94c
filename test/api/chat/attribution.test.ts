/** CONTRACT 6: each reply names the app of its request, and the record has what the request said about it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { appIdOf } from '../../../pipeline/contract/app-identity.ts'
import { BASE_PATH } from '../../../api/paths.ts'
import { sendRaw } from '../../support/api.ts'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import {
  answers,
  chunksOf,
  completion,
  json,
  sse,
  status,
  stream,
  type Behaviour,
} from '../../support/chat/upstream.ts'

let chat: ScriptedChat
beforeAll(async () => {
  chat = await startScriptedChat()
})
afterAll(() => chat.stop())

type Headers = Readonly<Record<string, string>>
const recordSchema = z.looseObject({
  app_id: z.int().optional(),
  app: z.string().optional(),
  app_title: z.string().nullable().optional(),
  app_categories: z.string().nullable().optional(),
})

async function ask(headers: Headers, behaviour: Behaviour = answers(), streams = false) {
  chat.script(behaviour)
  const response = await chat.api.post({ model: 'a/one', messages: MESSAGES, stream: streams }, { headers })
  const text = await response.text()
  return {
    appId: response.headers.get('X-App-Id'),
    text,
    record: recordSchema.parse(chat.records().at(-1)),
  }
}

/** A text as HTTP carries it: UTF-8 in bytes. */
const onTheWire = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

describe('the id of an app', () => {
  it.each([
    ['https://app.example', 'app.example'],
    ['https://app.example/', 'app.example'],
    ['HTTP://WWW.App.Example/', 'app.example'],
    ['https://app.example:8443/', 'app.example:8443'],
    ['https://user:secret@app.example/?token=1#part', 'app.example'],
    ['https://app.example/A/b//', 'app.example/A/b'],
    [onTheWire('https://bücher.example/straße'), 'xn--bcher-kva.example/stra%C3%9Fe'],
  ])('follows from the address %s alone', async (address, identity) => {
    const { appId, record } = await ask({ 'HTTP-Referer': address })
    expect(appId).toBe(String(appIdOf(identity)))
    expect(record).toMatchObject({ app: Buffer.from(address, 'latin1').toString('utf8'), app_title: null })
    expect(record).not.toHaveProperty('app_id')
    // The title and an earlier request change nothing.
    expect((await ask({ 'HTTP-Referer': address, 'X-Title': 'Any' })).appId).toBe(appId)
  })

  it.each([
    'http://localhost:3000/app',
    'http://192.168.1.20',
    'http://[::1]:3000',
    'https://tool.corp.internal',
  ])('follows from the title if many apps share the address, such as %s', async (address) => {
    const { appId, record } = await ask({ 'HTTP-Referer': address, 'X-Title': 'My  Tool' })
    expect(appId).toBe(String(appIdOf('local:my tool')))
    expect(record).toMatchObject({ app: 'My  Tool', app_title: 'My  Tool' })
    expect((await ask({ 'HTTP-Referer': address })).appId).toBe('0')
  })

  it.each([
    ['no header', {}],
    ['a title without an address', { 'X-Title': 'App', 'X-App-Categories': 'game' }],
    ['a text that is no address', { 'HTTP-Referer': 'My App', 'X-Title': 'App' }],
    [
      'an address of another kind',
      { 'HTTP-Referer': 'chrome-extension://abcdef/page.html', 'X-Title': 'App' },
    ],
    [
      'an address without end',
      { 'HTTP-Referer': `https://app.example/${'x'.repeat(300)}`, 'X-Title': 'App' },
    ],
  ])('is 0 for %s', async (_name, headers: Headers) => {
    const { appId, record } = await ask(headers)
    expect(appId).toBe('0')
    expect(record).toMatchObject({ app_id: 0 })
    expect(record).not.toHaveProperty('app')
  })

  it.each([
    ['whole, served', answers(), false],
    ['whole, refused', status(400), false],
    ['whole, failed', status(500), false],
    ['streamed, served', answers(), true],
    ['streamed, failed', status(500), true],
  ])('is in the reply to a new app: %s', async (name, behaviour, streams) => {
    const host = `${name.replaceAll(/\W+/g, '-')}.example`
    expect((await ask({ 'HTTP-Referer': `https://${host}` }, behaviour, streams)).appId).toBe(
      String(appIdOf(host)),
    )
  })

  it('is in the head that goes out in silence, before any provider serves', async () => {
    await using slow = await startScriptedChat({ chat: { silenceMs: 20 } })
    const { promise, resolve } = Promise.withResolvers<void>()
    slow.script(async (response, received) => {
      await promise
      await answers()(response, received)
    })
    const headers = { 'HTTP-Referer': 'https://slow.example' }
    const response = await slow.api.post({ model: 'a/one', messages: MESSAGES, stream: true }, { headers })
    expect(response.headers.get('X-App-Id')).toBe(String(appIdOf('slow.example')))
    resolve()
    await response.text()
  })

  it('is in the reply to an unreadable body', async () => {
    const headers = { 'HTTP-Referer': 'https://app.example' }
    expect((await chat.api.post('{', { headers })).headers.get('X-App-Id')).toBe(
      String(appIdOf('app.example')),
    )
  })
})

describe('the record', () => {
  const NAMED = { 'HTTP-Referer': 'https://app.example' }

  it.each([
    ['X-Title', 'An app', 'An app'],
    ['X-Some-Service-Title', 'An app', 'An app'],
    ['X-Title', onTheWire('Café ☕ 应用'), 'Café ☕ 应用'],
    ['X-Title', 'Caf\u00E9', 'Café'],
    ['X-Title', ' ', null],
    ['Title', 'no header of ours', null],
  ])('has the title of %s: %s', async (name, sent, title) => {
    expect((await ask({ ...NAMED, [name]: sent })).record.app_title).toBe(title)
  })

  it('has the title of the shortest header name that has one', async () => {
    const headers = { ...NAMED, 'X-B-Title': 'long', 'X-Title': ' ' }
    expect((await ask(headers)).record.app_title).toBe('long')
    expect((await ask({ ...headers, 'X-Title': 'short' })).record.app_title).toBe('short')
  })

  it('has the categories as sent, also of repeated headers', async () => {
    expect((await ask({ ...NAMED, 'X-Categories': 'game, cli-agent' })).record.app_categories).toBe(
      'game, cli-agent',
    )
    const body = JSON.stringify({ model: 'a/one', messages: MESSAGES })
    const { host } = new URL(chat.api.origin)
    await sendRaw(
      chat.api.origin,
      `POST ${BASE_PATH}/chat/completions HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n` +
        `Authorization: Bearer ${chat.api.key}\r\nContent-Type: application/json\r\n` +
        'HTTP-Referer: https://first.example\r\nHTTP-Referer: https://second.example\r\n' +
        'X-App-Categories: game\r\nX-App-Categories: legal\r\n' +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    )
    expect(chat.records().at(-1)).toMatchObject({
      app: 'https://first.example',
      app_categories: 'game,legal',
    })
  })

  it.each([false, true])(
    'has the parts of the tokens, and nulls for unreported ones, streamed: %s',
    async (streams) => {
      const usage = {
        prompt_tokens: 7,
        completion_tokens: 3,
        prompt_tokens_details: { cached_tokens: 5 },
        completion_tokens_details: { reasoning_tokens: 2 },
      }
      const reporting = streams ? stream(sse(chunksOf(['Hello'], usage))) : json({ ...completion(), usage })
      const { record } = await ask(NAMED, reporting, streams)
      expect(record).toMatchObject({ reasoning_tokens: 2, cached_tokens: 5 })
      const plain = (await ask(NAMED, answers(), streams)).record
      expect(plain).toMatchObject({ reasoning_tokens: null, cached_tokens: null })
    },
  )
})

it.each([
  ['its address', { 'HTTP-Referer': 'https://app.example' }, 'address', appIdOf('app.example')],
  ['its title', { 'HTTP-Referer': 'http://localhost', 'X-Title': 'A' }, 'title', appIdOf('local:a')],
  ['nothing', {}, 'nothing', 0],
])('router metadata says that %s named the app', async (_name, headers, foundBy, id) => {
  const { text } = await ask({ ...headers, 'X-Router-Metadata': 'enabled' })
  expect(text).toContain(`"app":{"app_id":${id},"found_by":"${foundBy}"}`)
})

it('a request of a new app waits for no store, and makes no other request wait', async () => {
  // Another process that writes, as a backup or a sync does.
  const other = new DatabaseSync(join(chat.api.dataDir, 'service.sqlite'))
  other.exec('BEGIN IMMEDIATE')
  const apps = Array.from({ length: 20 }, (_, index) => `https://new-${index}.example`)
  const all = apps.map(async (address) => await ask({ 'HTTP-Referer': address }))
  for (const [index, { appId }] of (await Promise.all(all)).entries()) {
    expect(appId).toBe(String(appIdOf(`new-${index}.example`)))
  }
  other.exec('ROLLBACK')
  other.close()
  expect(existsSync(join(chat.api.dataDir, 'raw', 'apps'))).toBe(false)
})
