import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createDirectoryClient } from '../../../../../api/scim/directory/http/client.ts'
import { SYNC_LIMITS } from '../../../../../api/scim/directory/limits.ts'
import { startDirectory } from '../../../../support/scim/faulty-directory.ts'

const TOKEN = 'abc/def"ghi0123456789=='
const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
const MIB = 1024 * 1024

/** The client's result for a reply with these bytes and headers. */
async function receive(
  bytes: string | Buffer,
  headers: Record<string, string> = {},
  status = 200,
): Promise<unknown> {
  await using directory = await startDirectory([], {
    quirk: () => ({ send: (response) => response.writeHead(status, headers).end(bytes) }),
  })
  const client = createDirectoryClient({
    url: new URL(directory.url),
    token: TOKEN,
    reach: { allowLoopback: true, allowPrivate: false },
    limits: { ...SYNC_LIMITS, responseBytes: MIB, responseElements: 1000, responseDepth: 5, tries: 1 },
    signal: new AbortController().signal,
  })
  try {
    return (await client.get('/Groups')).body
  } finally {
    await client.close()
  }
}

const NAME = '{"displayName":"Zürich"}'
const READ = { displayName: 'Zürich' }

describe('the body of a reply', () => {
  it.each([
    undefined,
    'application/scim+json',
    'application/json; charset=utf-8',
    'application/json+scim;charset=UTF-8',
    'application/vnd.example.scim+json; version=2',
    'text/json',
    'text/html',
    'text/plain; charset="utf-8"',
  ])('is read as JSON under the Content-Type %s', async (type) => {
    expect(await receive(NAME, type === undefined ? {} : { 'Content-Type': type })).toEqual(READ)
  })

  it.each<[string, Buffer]>([
    ['ISO-8859-1', Buffer.from(NAME, 'latin1')],
    ['utf-16le', Buffer.from(NAME, 'utf16le')],
    ['utf-8', Buffer.from(`\uFEFF${NAME}`)],
  ])('is decoded from %s', async (charset, bytes) => {
    expect(await receive(bytes, { 'Content-Type': `application/json; charset=${charset}` })).toEqual(READ)
  })

  it.each<[string, Buffer]>([
    ['gzip', gzipSync(NAME)],
    ['x-gzip', gzipSync(NAME)],
    ['deflate', deflateSync(NAME)],
    ['deflate', deflateRawSync(NAME)],
    ['br', brotliCompressSync(NAME)],
    ['identity', Buffer.from(NAME)],
  ])('is read in the unrequested content coding %s', async (coding, bytes) => {
    expect(await receive(bytes, { 'Content-Encoding': coding })).toEqual(READ)
  })

  it.each<[string, Buffer, Record<string, string>]>([
    ['bytes of another charset', Buffer.from(NAME, 'latin1'), {}],
    ['an unknown charset', Buffer.from(NAME), { 'Content-Type': 'application/json; charset=x-mine' }],
    ['an unknown coding', Buffer.from(NAME), { 'Content-Encoding': 'compress' }],
    ['a coding that it does not have', Buffer.from(NAME), { 'Content-Encoding': 'gzip' }],
    ['half of a coding', gzipSync(NAME).subarray(0, 20), { 'Content-Encoding': 'gzip' }],
    ['a page for people', Buffer.from('<html></html>'), { 'Content-Type': 'text/html' }],
    ['nothing', Buffer.alloc(0), {}],
  ])('is rejected with %s', async (_name, bytes, headers) => {
    await expect(receive(bytes, headers)).rejects.toMatchObject({ failure: 'directory_invalid_response' })
  })

  it.each<[string, Buffer | string, Record<string, string>]>([
    ['bytes', `{"a":"${'x'.repeat(MIB)}"}`, {}],
    ['bytes once it is decoded', gzipSync(Buffer.alloc(50 * MIB, 32)), { 'Content-Encoding': 'gzip' }],
    ['objects', `{"Resources":[{}${',{}'.repeat(1000)}]}`, {}],
    ['attributes', `{"a":0${Array.from({ length: 1000 }, (_, index) => `,"${index}":0`).join('')}}`, {}],
    ['opening brackets', '['.repeat(1000), {}],
    ['levels', `${'['.repeat(6)}${']'.repeat(6)}`, {}],
  ])('is rejected with too many %s', async (_name, bytes, headers) => {
    await expect(receive(bytes, headers)).rejects.toMatchObject({ failure: 'directory_too_large' })
  })

  it('is counted without brackets and commas inside texts', async () => {
    const text = `${'[{,'.repeat(2000)}\\"${'[{,'.repeat(2000)}`
    expect(await receive(JSON.stringify({ text }))).toEqual({ text })
  })

  it.each([
    ['a text', JSON.stringify({ displayName: `x ${TOKEN} y` })],
    ['a text with escaped slashes', JSON.stringify({ id: TOKEN }).replaceAll('/', '\\/')],
    ['a text with characters by their numbers', `{"id":"${TOKEN.replaceAll(/\W/g, escaped)}"}`],
    ['a text of numbers', `{"id":"${TOKEN.replaceAll(/./g, escaped).toUpperCase().replaceAll('U', 'u')}"}`],
  ])('is rejected if it repeats the token in %s, and the message does not show it', async (_name, body) => {
    const rejection = expect(receive(body)).rejects
    await rejection.toMatchObject({
      failure: 'directory_invalid_response',
      message: 'GET /Groups: the reply repeats the token',
    })
  })

  it('is rejected without showing the token if the scimType or the Content-Type is the token', async () => {
    expect(await receive(JSON.stringify({ scimType: TOKEN }), {}, 400)).toBeUndefined()
    const type = `text/${TOKEN.replaceAll(/\W/g, '')}`
    await expect(receive('<', { 'Content-Type': type })).rejects.toMatchObject({
      message: 'GET /Groups: no JSON, but 1 characters of another type',
    })
  })
})
