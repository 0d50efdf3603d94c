/** CONTRACT 3 and 6: requests that no provider is asked to serve. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { BASE_PATH } from '../../../api/paths.ts'
import { envelopeSchema } from '../../support/api.ts'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import { answers } from '../../support/chat/upstream.ts'

const fine = JSON.stringify({ model: 'a/one', messages: MESSAGES })
/** A value with this many levels, which takes long to serialize. */
const nested = (levels: number) => `${'{"0":'.repeat(levels)}1${'}'.repeat(levels)}`
let chat: ScriptedChat

beforeAll(async () => {
  chat = await startScriptedChat({ environment: { CHAT_BODY_MIB: '1' } })
  chat.script(answers())
})

afterAll(() => chat.stop())

const post = (body: string, headers: Readonly<Record<string, string>>) =>
  fetch(`${chat.api.origin}${BASE_PATH}/chat/completions`, { method: 'POST', headers, body })

it.each([
  ['no key', 401, 'authentication', fine, {}],
  ['a key of the other kind', 401, 'authentication', fine, { Authorization: 'management' }],
  ['a broken body', 400, 'invalid_request', '{"model":', {}],
  ['no JSON body', 400, 'invalid_request', 'model=a', { 'Content-Type': 'text/plain' }],
  ['a body in a code nobody reads', 415, 'invalid_request', fine, { 'Content-Encoding': 'compress' }],
  ['a body that is too large', 413, 'payload_too_large', JSON.stringify('x'.repeat(1_100_000)), {}],
  ['a body that is not packed as it says', 400, 'invalid_request', fine, { 'Content-Encoding': 'gzip' }],
  ['a wrong field nested too deeply', 400, 'invalid_request', `{"model":${nested(100_000)}}`, {}],
  [
    'a further field nested too deeply',
    400,
    'invalid_request',
    fine.replace('{', `{"more":${nested(100_000)},`),
    {},
  ],
  ['a wrong request', 400, 'invalid_request', '{}', {}],
  ['an unknown model', 400, 'invalid_request', fine.replace('a/one', 'a/two'), {}],
] as const)('%s is rejected in the error envelope, and no provider is called', async (...refused) => {
  const [name, code, errorType, body, more] = refused
  const before = chat.records().length
  const isKnown = code !== 401
  const management = await chat.api.makeKey('management')
  const response = await post(body, {
    'Content-Type': 'application/json',
    ...(isKnown ? { Authorization: `Bearer ${chat.api.key}` } : {}),
    ...more,
    ...('Authorization' in more ? { Authorization: `Bearer ${management}` } : {}),
  })
  expect(response.status, name).toBe(code)
  const { error, user_id } = envelopeSchema.parse(await response.json())
  expect(error).toMatchObject({ code, metadata: { error_type: errorType } })
  expect(user_id === null).toBe(name === 'no key')
  expect(chat.upstream.received).toEqual([])
  // A request with a valid key has a record, which counts for app 0.
  const records = chat.records().slice(before)
  expect(records).toMatchObject(
    isKnown ? [{ requests: 0, status: code, outcome: 'failed', attempts: [] }] : [],
  )
})

it.each([
  ['{oops', {}, 'The body is not valid JSON'],
  [JSON.stringify('x'.repeat(1_100_000)), {}, 'at most 1048576 bytes are allowed'],
  [fine, { 'Content-Encoding': 'gzip' }, 'not in the coding that its headers name'],
  [fine, { 'Content-Encoding': 'zip' }, 'unsupported content encoding "zip"; allowed: br, deflate, gzip'],
  [fine, { 'Content-Type': 'application/json; charset=x' }, 'unsupported charset "X"; allowed: utf-8'],
  [fine.replace('a/one', 'a/two'), {}, 'Unknown model: "a/two"; /api/v1/models lists'],
  [fine.replace('a/one', 'a/two').replace('{', `{"more":${nested(499)},`), {}, 'Unknown model: "a/two"'],
  [fine.replace('{', `{"more":${nested(500)},`), {}, 'nested too deeply: at most 500 levels'],
  [
    fine.replace('{', `{"more":${'['.repeat(500)}${']'.repeat(500)},`),
    {},
    'nested too deeply: at most 500 levels',
  ],
])('the error for an invalid body says what is wrong', async (body, more, message) => {
  const known = { 'Content-Type': 'application/json', Authorization: `Bearer ${chat.api.key}` }
  const { error } = envelopeSchema.parse(await (await post(body, { ...known, ...more })).json())
  expect(error.message).toContain(message)
})

it('a body that is nested as deeply as allowed is passed on', async () => {
  const body = fine.replace('{', `{"more":${nested(499)},`)
  const known = { 'Content-Type': 'application/json', Authorization: `Bearer ${chat.api.key}` }
  expect((await post(body, known)).status).toBe(200)
})

it('another method is rejected with the allowed ones', async () => {
  const response = await chat.api.get('/chat/completions', chat.api.key)
  expect(response.status).toBe(405)
  expect(response.headers.get('Allow')).toBe('POST, OPTIONS')
})
