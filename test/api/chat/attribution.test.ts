/** CONTRACT 6: each reply names the app of its request, and the record has what the request said about it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, describe, expect, it } from 'vitest'
import { COMPLETIONS_PATH } from '../../../api/paths.ts'
import { appIdOf } from '../../../pipeline/contract/app-identity.ts'
import { sendRaw } from '../../support/api.ts'
import { startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'

type Sent = Readonly<Record<string, string>>

let chat: ScriptedChat
beforeAll(async () => {
  chat = await startScriptedChat()
})

async function ask(sent: Sent) {
  const headers = { ...sent, 'X-Router-Metadata': 'enabled' }
  const response = await chat.api.ask({}, { headers })
  const text = await response.text()
  const [record] = chat.records(response.headers.get('X-Request-Id') ?? '')
  return { appId: response.headers.get('X-App-Id'), text, record }
}

/** A text as HTTP carries it: UTF-8 in bytes. */
const onTheWire = (text: string) => Buffer.from(text, 'utf8').toString('latin1')
const addressed = (address: string, more: Sent = {}) => ({ 'HTTP-Referer': address, ...more })
const TITLE = { 'X-Title': 'My  Tool' }
const LOCAL = 'local:my tool'
const UMLAUTS = 'https://bücher.example/straße'

describe('the id of an app', () => {
  it.each<[string, Sent, string, string?]>([
    ['its address', addressed('https://app.example'), 'app.example'],
    ['its address, whatever its title', addressed('https://app.example', TITLE), 'app.example'],
    ['its address, without the last slash', addressed('https://app.example/'), 'app.example'],
    ['its address, without www.', addressed('HTTP://WWW.App.Example/'), 'app.example'],
    ['its address with a port', addressed('https://app.example:8443/'), 'app.example:8443'],
    ['its address, without user and query', addressed('https://u:secret@app.example/?a=1#b'), 'app.example'],
    ['its address with a path', addressed('https://app.example/A/b//'), 'app.example/A/b'],
    [
      'its address in other letters',
      addressed(onTheWire(UMLAUTS)),
      'xn--bcher-kva.example/stra%C3%9Fe',
      UMLAUTS,
    ],
    ['its title beside localhost', addressed('http://localhost:3000/app', TITLE), LOCAL, 'My  Tool'],
    ['its title beside a private address', addressed('http://192.168.1.20', TITLE), LOCAL, 'My  Tool'],
    ['its title beside an address of IPv6', addressed('http://[::1]:3000', TITLE), LOCAL, 'My  Tool'],
    ['its title beside a private name', addressed('https://a.corp.internal', TITLE), LOCAL, 'My  Tool'],
  ])('follows from %s alone', async (_name, headers, identity, app = headers['HTTP-Referer']) => {
    const { appId, text, record } = await ask(headers)
    expect(appId).toBe(String(appIdOf(identity)))
    const foundBy = identity === LOCAL ? 'title' : 'address'
    expect(text).toContain(`"app":{"app_id":${appId},"found_by":"${foundBy}"}`)
    expect(record).toMatchObject({ app, app_title: headers['X-Title'] ?? null, app_categories: null })
    expect(record).not.toHaveProperty('app_id')
  })

  it.each<[string, Sent]>([
    ['no header', {}],
    ['a title without an address', { ...TITLE, 'X-App-Categories': 'game' }],
    ['an address that many apps share, without a title', addressed('http://localhost:3000')],
    ['a text that is no address', addressed('My App', TITLE)],
    ['an address of another kind', addressed('chrome-extension://abcdef/page.html', TITLE)],
    ['an address without end', addressed(`https://app.example/${'x'.repeat(300)}`, TITLE)],
  ])('is 0 for %s', async (_name, headers) => {
    const { appId, text, record } = await ask(headers)
    expect(appId).toBe('0')
    expect(text).toContain('"app":{"app_id":0,"found_by":"nothing"}')
    expect(record).toMatchObject({ app_id: 0 })
    expect(record).not.toHaveProperty('app')
  })

  it.each<[string, RequestInit, number]>([
    ['an unreadable body', { method: 'POST', body: '{' }, 400],
    ['a wrong key', { method: 'POST' }, 401],
    ['a wrong method', { method: 'GET' }, 405],
    ['the preflight of a browser', { method: 'OPTIONS' }, 204],
  ])('is in the reply to %s', async (_name, init, expected) => {
    const headers = new Headers({ ...addressed('https://app.example'), 'Content-Type': 'application/json' })
    headers.set('Authorization', `Bearer ${expected === 401 ? 'no key' : chat.api.key}`)
    const address = `${chat.api.origin}${COMPLETIONS_PATH}`
    const response = await fetch(address, { ...init, headers })
    expect(response.status).toBe(expected)
    expect(response.headers.get('X-App-Id')).toBe(String(appIdOf('app.example')))
  })
})

describe('the record', () => {
  const NAMED = addressed('https://app.example')

  it.each<[string, Sent, string | null]>([
    ['X-Title', { 'X-Title': 'An app' }, 'An app'],
    ['a header with a prefix', { 'X-Some-Service-Title': 'An app' }, 'An app'],
    ['UTF-8', { 'X-Title': onTheWire('Café ☕ 应用') }, 'Café ☕ 应用'],
    ['Latin-1', { 'X-Title': 'Caf\u00E9' }, 'Café'],
    ['the shortest header name', { 'X-B-Title': 'long', 'X-Title': 'short' }, 'short'],
    ['the shortest header name that has one', { 'X-B-Title': 'long', 'X-Title': ' ' }, 'long'],
    ['blanks', { 'X-Title': ' ' }, null],
    ['no header of ours', { Title: 'An app' }, null],
  ])('has the title of %s', async (_name, headers, title) => {
    expect((await ask({ ...NAMED, ...headers })).record).toMatchObject({ app_title: title })
  })

  it('has the categories as sent, also of repeated headers', async () => {
    const { record } = await ask({ ...NAMED, 'X-Categories': 'game, cli-agent' })
    expect(record).toMatchObject({ app_categories: 'game, cli-agent' })
    const repeated = ['first', 'second'].map((name) => `HTTP-Referer: https://${name}.example`)
    const lines = [...repeated, 'X-App-Categories: game', 'X-App-Categories: legal', 'Connection: close']
    await sendRaw(chat.api.origin, chat.rawRequest(lines))
    const both = { app: 'https://first.example', app_categories: 'game,legal' }
    expect(chat.records().at(-1)).toMatchObject(both)
  })
})

it('a request of a new app waits for no store, and makes no other request wait', async () => {
  // Another process that writes, as a backup or a sync does.
  const other = new DatabaseSync(join(chat.api.dataDir, 'service.sqlite'))
  other.exec('BEGIN IMMEDIATE')
  const hosts = Array.from({ length: 20 }, (_, index) => `new-${index}.example`)
  const all = await Promise.all(hosts.map((host) => ask(addressed(`https://${host}`))))
  expect(all.map(({ appId }) => appId)).toEqual(hosts.map((host) => String(appIdOf(host))))
  other.exec('ROLLBACK')
  other.close()
  expect(existsSync(join(chat.api.dataDir, 'raw', 'apps'))).toBe(false)
})
