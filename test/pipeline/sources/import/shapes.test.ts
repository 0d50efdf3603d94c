/** CONTRACT 9: further forms of the known producers' exports: generations, their apps, and their token parts. */
import { describe, expect, it } from 'vitest'
import { mapRow } from '../../../../pipeline/sources/import/map-row.ts'
import { helicone } from '../../../../pipeline/sources/import/maps/helicone.ts'
import { otlp } from '../../../../pipeline/sources/import/maps/otlp.ts'
import { parseExactly } from '../../../../pipeline/sources/formats/json.ts'
import type { UsageMap } from '../../../../pipeline/sources/import/usage-map.ts'

function usageOf(map: UsageMap, document: object) {
  const rows = map.rows?.(parseExactly(JSON.stringify(document))) ?? []
  return [...rows].flatMap((row) => mapRow(row, map) ?? [])
}

type Attributes = Readonly<Record<string, string | number | object>>

function attributesOf(attributes: Attributes) {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value:
      typeof value === 'string'
        ? { stringValue: value }
        : typeof value === 'number'
          ? { intValue: value }
          : value,
  }))
}

function span(attributes: Attributes, changes: object = {}) {
  return {
    traceId: '5b8efff798038103d269b633813fc60c',
    spanId: 'eee19b7ec3c1b174',
    startTimeUnixNano: '1763350561789123456',
    attributes: attributesOf(attributes),
    ...changes,
  }
}

function resourceOf(service: string, ...scopes: readonly (readonly object[])[]) {
  return {
    resource: { attributes: attributesOf({ 'service.name': service }) },
    scopeSpans: scopes.map((spans, index) => ({ scope: { name: `scope ${index}`, version: '1' }, spans })),
  }
}

const CHAT = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.request.model': 'gpt-5',
  'gen_ai.usage.input_tokens': 100,
  'gen_ai.usage.output_tokens': 10,
}
const CHAT_USAGE = { app: 'shop', prompt_tokens: '100', completion_tokens: '10', model: 'gpt-5' }

describe('of OpenTelemetry', () => {
  it.each([
    [
      'OpenLLMetry names the operation llm.request.type, and its embeddings are left out',
      [
        span({
          'llm.request.type': 'chat',
          'gen_ai.system': 'Anthropic',
          'gen_ai.request.model': 'gpt-5',
          'gen_ai.usage.prompt_tokens': 100,
          'gen_ai.usage.completion_tokens': 10,
          'gen_ai.usage.cache_read_input_tokens': 60,
        }),
        span({
          'llm.request.type': 'embedding',
          'gen_ai.request.model': 'embed',
          'gen_ai.usage.prompt_tokens': 7,
        }),
        span({ 'llm.request.type': 'rerank', 'gen_ai.request.model': 'rank' }),
        span({ 'traceloop.span.kind': 'workflow', 'traceloop.entity.name': 'answer' }),
      ],
      [{ ...CHAT_USAGE, provider: 'Anthropic', cached_tokens: '60' }],
    ],
    [
      'the AI SDK has a span around each call, which names no model of the conventions',
      [
        span({ 'ai.operationId': 'ai.streamText', 'ai.model.id': 'gpt-5', 'ai.usage.promptTokens': 100 }),
        span({
          'ai.operationId': 'ai.streamText.doStream',
          'gen_ai.request.model': 'gpt-5',
          'gen_ai.response.model': 'gpt-5',
          'gen_ai.usage.input_tokens': { doubleValue: 100 },
          'gen_ai.usage.output_tokens': { intValue: '10' },
          'gen_ai.response.finish_reasons': { arrayValue: { values: [{ stringValue: 'stop' }] } },
        }),
      ],
      [CHAT_USAGE],
    ],
    [
      'Pydantic AI sums the tokens of the calls of an agent on the span of the agent',
      [
        span({ agent_name: 'helper', model_name: 'gpt-5', 'gen_ai.usage.input_tokens': 100 }),
        span({
          ...CHAT,
          'gen_ai.usage.details.cache_read_tokens': 60,
          'gen_ai.usage.details.reasoning_tokens': 4,
        }),
      ],
      [{ ...CHAT_USAGE, cached_tokens: '60', reasoning_tokens: '4' }],
    ],
    [
      'a status may be a name',
      [span(CHAT, { status: { code: 'STATUS_CODE_ERROR', message: 'overloaded' } })],
      [{ ...CHAT_USAGE, requests: '0' }],
    ],
  ])('%s', (_, spans, expected) => {
    const usage = usageOf(otlp, { resourceSpans: [resourceOf('shop', [], spans)] })
    expect(usage).toHaveLength(expected.length)
    expect(usage).toMatchObject(expected)
  })

  it.each([
    ['several scopes', { resourceSpans: [resourceOf('shop', [span(CHAT)], []), resourceOf('shop')] }],
    ['a reply of Tempo', { batches: [resourceOf('shop', [span(CHAT)])] }],
    ['a reply of its newer API', { trace: { resourceSpans: [resourceOf('shop', [span(CHAT)])] } }],
  ])('%s hold the spans', (_, document) => {
    expect(usageOf(otlp, document)).toMatchObject([{ ...CHAT_USAGE, ts: '2025-11-17T03:36:01.789123456Z' }])
  })

  it.each(['resourceLogs', 'resourceMetrics'])('a line of %s holds no usage', (key) => {
    expect(usageOf(otlp, { [key]: [{ ...resourceOf('shop'), scopeLogs: [] }] })).toEqual([])
  })

  it.each(['unknown_service', 'unknown_service:python'])('the service %s names no app', (service) => {
    const usage = usageOf(otlp, { resourceSpans: [resourceOf(service, [span(CHAT)])] })
    expect(usage).toMatchObject([{ ...CHAT_USAGE, app: null }])
  })
})

const REQUEST = {
  request_id: 'r1',
  request_created_at: '2026-11-17T03:36:01.789Z',
  request_path: 'https://gateway.helicone.ai/v1/chat/completions',
  request_properties: { 'App-Name': 'shop' },
  response_id: 'p1',
  response_status: 200,
  response_model: 'gpt-5',
  provider: 'OPENAI',
  prompt_tokens: 100,
  completion_tokens: 10,
}

describe('of Helicone', () => {
  it.each([
    'https://oai.helicone.ai/v1/embeddings',
    'https://example.openai.azure.com/openai/deployments/embed/embeddings?api-version=2024-02-01',
    'https://api.openai.com/v1/moderations',
    'https://generativelanguage.googleapis.com/v1beta/models/embed:batchEmbedContents',
    '/v1/embeddings',
  ])('a request to %s is left out', (request_path) => {
    expect(usageOf(helicone, { data: [{ ...REQUEST, request_path }], error: null })).toEqual([])
  })

  it.each([
    ['a property names the app', {}, CHAT_USAGE],
    [
      'without a property the referrer does',
      { request_properties: null, request_referrer: 'https://shop.example/ask' },
      { ...CHAT_USAGE, app: 'https://shop.example/ask' },
    ],
    ['a cancelled request has a negative status', { response_status: -3 }, { ...CHAT_USAGE, requests: '0' }],
    [
      'a stream without usage has no tokens',
      { prompt_tokens: null, completion_tokens: null, response_id: null },
      { app: 'shop', prompt_tokens: null, completion_tokens: null },
    ],
  ])('%s', (_, changes, expected) => {
    expect(usageOf(helicone, { data: [{ ...REQUEST, ...changes }], error: null })).toMatchObject([expected])
  })
})
