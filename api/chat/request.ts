/** Chat requests: the app and the body as callers send them, and the body as providers receive it (CONTRACT 6). */
import { isUtf8 } from 'node:buffer'
import type { Request } from 'express'
import { z } from 'zod'
import { appIdOf, cleanName, identityOfAddress, NAMED_PREFIX } from '../../pipeline/contract/app-identity.ts'
import { UNATTRIBUTED_APP_ID } from '../../pipeline/contract/dataset.ts'
import type { NamedApp, Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import type { JsonBody } from '../http/request-body.ts'
import { isObject, longList, shorten, type JsonObject } from '../untrusted/json.ts'
import type { Provider } from './configuration.ts'

/** A valid chat request. */
export type ChatRequest = ReturnType<typeof readChatRequest>

const contentSchema = z.union([z.string(), longList(z.looseObject({ type: z.string() }))], {
  error: 'Expected a text, or a list of parts with a type each',
})
const toolCallSchema = z.looseObject({ id: z.string().nullish(), type: z.string().nullish() })

/** Roles that need content; some providers know further ones, which decide for themselves. */
const WITH_CONTENT = ['system', 'developer', 'user', 'tool']

const messageSchema = z
  .looseObject(
    {
      role: z.string('Expected a role, such as system, user, assistant or tool').min(1),
      content: contentSchema.nullish(),
      tool_calls: longList(toolCallSchema).nullish(),
      tool_call_id: z.string().nullish().describe('The call whose result this is; for the role tool.'),
    },
    'Expected an object with a role and, mostly, content',
  )
  .superRefine(({ role, content, tool_call_id: call }, context) => {
    const needs = (member: string) =>
      context.addIssue({ code: 'custom', path: [member], message: `Expected by ${role}` })
    if (WITH_CONTENT.includes(role) && (content ?? undefined) === undefined) needs('content')
    if (role === 'tool' && (call ?? undefined) === undefined) needs('tool_call_id')
  })

const functionSchema = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.looseObject({}).nullish(),
})

const toolSchema = z
  .looseObject({ type: z.string(), function: functionSchema.optional() })
  .refine((tool) => tool.type !== 'function' || tool.function !== undefined, {
    path: ['function'],
    error: 'Expected an object with the name of the function',
  })

const names = longList(z.string().min(1)).nullish()

const preferencesSchema = z
  .object({
    order: names.describe('Tried first, in this order.'),
    only: names.describe('No others are tried.'),
    ignore: names,
    allow_fallbacks: z
      .boolean()
      .nullish()
      .describe('Whether others are tried after those of `order`, or after the first provider of a model.'),
    // These restrict nothing, and have no effect.
    sort: z.unknown().optional(),
    preferred_min_throughput: z.unknown().optional(),
    preferred_max_latency: z.unknown().optional(),
  })
  .catchall(z.unknown().refine(restrictsNothing, 'This service cannot keep such a restriction; leave it out'))

/** The caller's choice among the providers of a model, by their names. */
export type Preferences = Partial<z.infer<typeof preferencesSchema>>

function restrictsNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (isObject(value)) return Object.keys(value).length === 0
  return value === null || value === false || value === 'allow'
}

const model = z.string().min(1)
const number = z.number().nullish()

/** The fields that this service reads; all others pass through. */
export const chatRequestSchema = z.looseObject({
  model: model.nullish().describe('`author/slug`; tried first.'),
  models: longList(model)
    .nullish()
    .describe('Models to fall back to, in order: ten at most, unless the operator sets another limit.'),
  messages: longList(messageSchema)
    .refine((list) => list.length > 0, 'Expected at least one message')
    .meta({ minItems: 1 }),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({}).nullish(),
  tools: longList(toolSchema).nullish(),
  tool_choice: z.union([z.string(), z.looseObject({})], { error: 'Expected a text or an object' }).nullish(),
  // Providers differ in what they allow.
  temperature: number,
  top_p: number,
  // 0 and -1 mean no limit to some servers.
  max_tokens: z.int().min(-1).nullish(),
  max_completion_tokens: z.int().min(-1).nullish(),
  n: z.int().min(1).nullish(),
  stop: z
    .union([z.string(), longList(z.string())], { error: 'Expected a text or a list of texts' })
    .nullish(),
  // 64 bits in OpenAI's format, more than a number holds: rejecting large seeds would help nobody.
  seed: z.number().multipleOf(1, 'Expected a whole number').nullish(),
  presence_penalty: number,
  frequency_penalty: number,
  response_format: z.looseObject({ type: z.string() }).nullish(),
  provider: preferencesSchema.nullish().describe('Which providers of a model are tried, and in which order.'),
})

/**
 * Reads the body of a request: its models in the order of fallback, each once, and what providers get. Messages, the bulk
 * of a body, are held as the bytes that are sent, since parsed ones would take several times as much until the reply ends.
 * @throws ApiError 400 that names each fault with its place.
 */
export function readChatRequest({ body, passedOn }: JsonBody) {
  const parsed = chatRequestSchema.safeParse(body)
  if (!parsed.success) throw invalidRequest(describe(parsed.error, body))
  const { model: first, models, stream, provider } = parsed.data
  const wanted = [...new Set([...(first ? [first] : []), ...(models ?? [])])]
  if (wanted.length === 0)
    throw invalidRequest('model is missing: name one in "model", or several in "models"')
  const preferences: Preferences = provider ?? {}
  const { messages, ...fields }: JsonObject = isObject(passedOn) ? passedOn : parsed.data
  const bytes = Buffer.from(`"messages":${JSON.stringify(messages)}}`)
  return { models: wanted, stream: stream === true, preferences, fields, messages: bytes }
}

/** Fields for a router, or fields that are written anew: some providers reject unknown fields. */
const NOT_PASSED_ON = 'models route provider plugins transforms session_id usage stream_options'.split(' ')

/** The JSON of a body in two parts: other fields, then the messages. */
export type ProviderBody = readonly [string, Buffer]

/** The body for one provider: its model name, no router fields, and a stream's usage requested. */
export function providerBody({ fields, messages, stream }: ChatRequest, provider: Provider): ProviderBody {
  const passedOn: Record<string, unknown> = { ...fields }
  for (const field of [...NOT_PASSED_ON, ...provider.drop]) delete passedOn[field]
  const asked = isObject(fields['stream_options']) ? fields['stream_options'] : {}
  const { include_usage: _usage, ...options } = asked
  if (provider.include_usage) Object.assign(options, { include_usage: true })
  if (stream && Object.keys(options).length > 0) passedOn['stream_options'] = options
  const others = JSON.stringify({ ...passedOn, model: provider.model, stream })
  return [`${others.slice(0, -1)},`, messages]
}

export function invalidRequest(message: string): ApiError {
  return new ApiError(400, message, { metadata: { error_type: 'invalid_request' } })
}

const FAULTS_SHOWN = 5

function describe(error: z.ZodError, body: unknown): string {
  const faults = error.issues.slice(0, FAULTS_SHOWN).map(({ path, message }) => {
    const place = z.core.toDotPath(path)
    return `${place === '' ? '' : `${shorten(place)}: `}${message}${sent(valueAt(body, path))}`
  })
  // The total is unknown: validation of a list stops early.
  const more = error.issues.length > FAULTS_SHOWN ? '; and more' : ''
  return `Invalid chat request: ${faults.join('; ')}${more}`
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined),
    body,
  )
}

function sent(value: unknown): string {
  return value === undefined ? '; it is missing' : `; sent: ${shorten(JSON.stringify(value))}`
}

const IS_ADDRESS = /^\s*https?:\/\//i
// With or without a service prefix in the middle.
const TITLE_HEADER = /^x-(?:.+-)?title$/
const CATEGORIES_HEADER = /^x-(?:.+-)?categories$/

/** Begins every reply of chat (CONTRACT 6): it names the app that the request names, and its errors have types. */
export function beginReply({ headersDistinct: headers }: Request, reply: Reply): void {
  const app = namedApp(headers)
  reply.locals.app = app
  reply.locals.typedErrors = true
  reply.set('X-App-Id', String(app.id))
}

/** The app that the headers name. An address that many apps share, such as localhost, counts by the title. */
function namedApp(headers: NodeJS.Dict<string[]>): NamedApp {
  const address = decode(headers['http-referer']?.[0])
  const title = linesOf(headers, TITLE_HEADER).find((one) => cleanName(one) !== '')
  const identity = identityOfAddress(address, title && cleanName(title))
  if (identity === undefined || !IS_ADDRESS.test(address)) {
    return { id: UNATTRIBUTED_APP_ID, foundBy: 'nothing', columns: { app_id: UNATTRIBUTED_APP_ID } }
  }
  const isShared = identity.startsWith(NAMED_PREFIX)
  const app = isShared ? (title ?? '') : address
  const categories = linesOf(headers, CATEGORIES_HEADER).join(',') || null
  return {
    id: appIdOf(identity),
    foundBy: isShared ? 'title' : 'address',
    columns: { app, app_title: title ?? null, app_categories: categories },
  }
}

/** The lines of all headers with such a name, in lower case, the shortest name first. */
function linesOf(headers: NodeJS.Dict<string[]>, name: RegExp): readonly string[] {
  return Object.keys(headers)
    .filter((key) => name.test(key))
    .toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
    .flatMap((key) => headers[key] ?? [])
    .map(decode)
}

/** Reads bytes as UTF-8 if they are valid, otherwise as Latin-1, the encoding of HTTP. */
function decode(text = ''): string {
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : text
}
