/** CONTRACT 9: one command imports an export of each producer, and the rankings contain its figures. */
import { globSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { makeFolder } from '../../../support/folders.ts'
import { runAt } from '../../../support/pipeline/in-process.ts'
import { queryCurrent, runCommand } from '../../../support/pipeline/nightly.ts'
import { parquetOf, rawFile } from '../../../support/pipeline/raw-files.ts'

/** Writes a file of a producer; returns its path. */
function put(name: string, content: string | Uint8Array): string {
  const path = join(makeFolder('inbox'), name)
  writeFileSync(path, content)
  return path
}

/** What an import of a file prints as JSON. */
async function importAs(dataDir: string, ...args: readonly string[]): Promise<unknown> {
  const ended = await runCommand(dataDir, 'import', ...args, '--json')
  expect(ended.stderr).toBe('')
  return JSON.parse(ended.stdout)
}

const partsOf = z.array(z.record(z.string(), z.unknown()))
const rowsOfUsage = z.array(z.record(z.string(), z.string()))
const printed = z.object({
  dry_run: z.literal(true),
  imported: z.tuple([z.object({ parts: partsOf, first_rows: rowsOfUsage })]),
})

/** The days and the first rows that a dry run prints; it writes nothing. */
async function preview(...args: readonly string[]) {
  const dataDir = makeFolder()
  const shown = printed.parse(await importAs(dataDir, ...args, '--dry-run'))
  expect(readdirSync(dataDir)).toEqual([])
  return shown.imported[0]
}

const lines = (...rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('')

const rowsOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line): object => JSON.parse(line))

const LITELLM = `request_id,call_type,spend,total_tokens,prompt_tokens,completion_tokens,startTime,endTime,model,model_group,custom_llm_provider,user,metadata,cache_hit,request_tags,team_id,status
r1,acompletion,0.1,110,100,10,2026-11-17 03:36:01.789,2026-11-17 03:36:04.789,gpt-5,openai/gpt-5,openai,u,"{""user_api_key_alias"": ""Claude Code"", ""usage_object"": {""prompt_tokens_details"": {""cached_tokens"": 50}}}",False,"[""User-Agent: x""]",,success
r2,acompletion,0.1,220,200,20,2026-11-17 23:59:59.999,2026-11-18 00:00:04.789,gpt-5,openai/gpt-5,openai,u,"{""user_api_key_alias"": ""claude code""}",False,[],team,success
r3,acompletion,0,0,0,0,2026-11-17 04:00:00,2026-11-17 04:00:01,gpt-5,openai/gpt-5,openai,u,"{""user_api_key_alias"": ""Claude Code""}",False,[],,failure
r4,aembedding,0,999,999,0,2026-11-17 04:00:00,2026-11-17 04:00:01,embed,embed,openai,u,"{""user_api_key_alias"": ""Claude Code""}",False,[],,success
r5,acompletion,0.1,7,5,2,2026-11-17 05:00:00,2026-11-17 05:00:01,gpt-5,openai/gpt-5,openai,u,"{""user_api_key_alias"": null}",False,[],,success
`

const OPENROUTER = `generation_id,created_at,cost_total,tokens_prompt,tokens_completion,tokens_reasoning,tokens_cached,model_permaslug,provider_name,cancelled,streamed,finish_reason_normalized,app_name,api_key_name
g1,2026-11-17 03:36:01.789,0.1,100,10,4,50,openai/gpt-5,OpenAI,false,true,stop,Claude Code,prod
g2,2026-11-17 23:59:59.999,0.1,200,20,,,openai/gpt-5,OpenAI,true,true,,Claude Code,prod
g3,2026-11-17 04:00:00,0,0,0,,,openai/gpt-5,OpenAI,false,true,error,Claude Code,prod
g4,2026-11-17 05:00:00,0.1,5,2,,,openai/gpt-5,OpenAI,false,true,stop,,prod
`

const CLOUDFLARE = String.raw`{"id":"c1","created_at":"2026-11-17T03:36:01.789Z","provider":"openai","model":"gpt-5","success":true,"tokens_in":100,"tokens_out":10,"metadata":"{\"app\":\"Claude Code\"}"}
{"id":"c2","created_at":"2026-11-17T23:59:59.999Z","provider":"openai","model":"gpt-5","success":true,"tokens_in":200,"tokens_out":20,"metadata":"{\"app\":\"Claude Code\",\"user\":1}"}
{"id":"c3","created_at":"2026-11-17T04:00:00Z","provider":"openai","model":"gpt-5","success":false,"tokens_in":0,"tokens_out":0,"metadata":"{\"app\":\"Claude Code\"}"}
{"id":"c4","created_at":"2026-11-17T05:00:00Z","provider":"openai","model":"gpt-5","success":true,"tokens_in":5,"tokens_out":2,"metadata":"{\"app\":\"\"}"}
`

// Cached tokens are part of the input in the first row, and additional in the second.
const LANGFUSE = `{"id":"l1","type":"GENERATION","start_time":"2026-11-17 03:36:01.789000","provided_model_name":"openai/gpt-5","usage_details":{"input":100,"output":10,"input_cached_tokens":50,"total":110},"trace_name":"Claude Code","metadata":{}}
{"id":"l2","type":"GENERATION","start_time":"2026-11-17 23:59:59.999000","provided_model_name":"openai/gpt-5","usage_details":{"input":150,"output":20,"input_cached_tokens":50,"total":220},"trace_name":"other","metadata":{"app":"Claude Code"}}
{"id":"l3","type":"GENERATION","start_time":"2026-11-17 04:00:00.000000","provided_model_name":"openai/gpt-5","usage_details":{},"trace_name":"Claude Code","metadata":{"app":"Claude Code"},"level":"ERROR"}
{"id":"l4","type":"GENERATION","start_time":"2026-11-17 05:00:00.000000","provided_model_name":"openai/gpt-5","usage_details":{"input":5,"output":2,"total":7},"trace_name":"","metadata":{}}
{"id":"s","type":"SPAN","start_time":"2026-11-17 03:36:01.789000","provided_model_name":"","usage_details":{},"trace_name":"Claude Code","metadata":{}}
`

const HELICONE = `{"request_id":"h1","response_id":"h1-reply","response_status":200,"request_created_at":"2026-11-17T03:36:01.789Z","request_path":"https://oai.helicone.ai/v1/chat/completions","request_properties":{"App":"Claude Code"},"provider":"OPENAI","model":"gpt-5","prompt_tokens":100,"completion_tokens":10,"prompt_cache_read_tokens":50}
{"request_id":"h2","response_id":"h2-reply","response_status":200,"request_created_at":"2026-11-17 23:59:59.999","request_path":"https://oai.helicone.ai/v1/chat/completions","request_properties":{"App":"Claude Code"},"provider":"OPENAI","model":"gpt-5","prompt_tokens":200,"completion_tokens":20,"prompt_cache_read_tokens":50}
{"request_id":"h3","response_id":"h3-reply","response_status":429,"request_created_at":"2026-11-17T04:00:00Z","request_path":"https://oai.helicone.ai/v1/chat/completions","request_properties":{"App":"Claude Code"},"provider":"OPENAI","model":"gpt-5","prompt_tokens":null,"completion_tokens":null}
{"request_id":"h4","response_id":"h4-reply","response_status":200,"request_created_at":"2026-11-17T05:00:00Z","request_path":"https://oai.helicone.ai/v1/chat/completions","request_properties":{},"provider":"OPENAI","model":"gpt-5","prompt_tokens":5,"completion_tokens":2,"prompt_cache_read_tokens":50}
`
// The producer's tool doubles the quotes of objects, and then those of the cell.
const HELICONE_CSV = `response_id,response_created_at,response_status,request_created_at,request_body,request_properties,request_user_id,model,prompt_tokens,completion_tokens,latency,cost
"h1-reply","2026-11-17T03:36:01.789Z","200","2026-11-17T03:36:01.789Z",,"{""""App"""":""""Claude Code""""}",,"gpt-5","100","10","1","0"
"h2-reply","2026-11-17 23:59:59.999","200","2026-11-17 23:59:59.999",,"{""""App"""":""""Claude Code""""}",,"gpt-5","200","20","1","0"
"h3-reply","2026-11-17T04:00:00Z","429","2026-11-17T04:00:00Z",,"{""""App"""":""""Claude Code""""}",,"gpt-5",,,"1","0"
"h4-reply","2026-11-17T05:00:00Z","200","2026-11-17T05:00:00Z",,"{}",,"gpt-5","5","2","1","0"
`

/** Pairs such as `app=shop gen_ai.usage.input_tokens=100` as attributes of OTLP; digits are an integer. */
function attributesOf(pairs: string) {
  return pairs.split(' ').map((pair) => {
    const [key = '', value = ''] = pair.split('=')
    if (value.startsWith('{')) return { key, value: JSON.parse(value) }
    return { key, value: /^\d+$/.test(value) ? { intValue: value } : { stringValue: value } }
  })
}

const span = (attributes: string, changes: object = {}) => ({
  traceId: '5b8efff798038103d269b633813fc60c',
  spanId: 'eee19b7ec3c1b174',
  startTimeUnixNano: '1763350561789123456',
  attributes: attributesOf(attributes),
  status: {},
  ...changes,
})

const spanAt = (spanId: string, iso: string, attributes: string, changes: object = {}) =>
  span(attributes, { spanId, startTimeUnixNano: `${Date.parse(iso)}123456`, ...changes })

const resourceOf = (service: string, ...scopes: readonly (readonly object[])[]) => ({
  resource: { attributes: service === '' ? [] : [{ key: 'service.name', value: { stringValue: service } }] },
  scopeSpans: scopes.map((spans, index) => ({ scope: { name: `scope ${index}`, version: '1' }, spans })),
})

/** The attributes of a call; those behind them take precedence. */
const chat = (input: number, output: number, others = '') =>
  'gen_ai.operation.name=chat gen_ai.request.model=gpt-5 ' +
  `gen_ai.usage.input_tokens=${input} gen_ai.usage.output_tokens=${output} ${others}`.trim()
const OTLP = {
  resourceSpans: [
    resourceOf('Claude Code', [
      spanAt('a1', '2026-11-17T03:36:01.789Z', chat(100, 10)),
      spanAt('a2', '2026-11-17T23:59:59.999Z', chat(200, 20)),
      spanAt('a3', '2026-11-17T04:00:00Z', 'gen_ai.operation.name=chat', { status: { code: 2 } }),
      spanAt('a4', '2026-11-17T04:00:00Z', chat(300, 30, 'gen_ai.operation.name=invoke_agent')),
      spanAt('a5', '2026-11-17T04:00:00Z', 'http.request.method=POST'),
    ]),
    resourceOf('', [spanAt('b1', '2026-11-17T05:00:00Z', chat(5, 2))]),
  ],
}

const EXPORTS: readonly (readonly [producer: string, name: string, content: string])[] = [
  ['litellm', 'spend.csv', LITELLM],
  ['openrouter', 'activity.csv', OPENROUTER],
  ['cloudflare', '20261117T000210Z_20261117T235959Z_a3cfe972.log.gz', CLOUDFLARE],
  ['cloudflare', 'reply.json', JSON.stringify({ result: rowsOf(CLOUDFLARE), success: true, errors: [] })],
  ['langfuse', 'observations.jsonl', LANGFUSE],
  ['langfuse', 'observations.json', JSON.stringify(rowsOf(LANGFUSE), null, 2)],
  ['helicone', 'helicone-export.jsonl', HELICONE],
  ['helicone', 'without-ending', JSON.stringify({ data: rowsOf(HELICONE), error: null }, null, 2)],
  ['helicone', 'output.csv', HELICONE_CSV],
  ['otlp', 'traces.json', `${JSON.stringify(OTLP)}\n`],
  ['otlp', 'traces-indented.json', JSON.stringify(OTLP, null, 2)],
]

describe('an export', () => {
  /** A producer's second export has the same requests, so it goes into a second folder. */
  const folderOf = new Map<number, string>()
  const imported = EXPORTS.map(([producer, name, content], index) => {
    const copies = EXPORTS.slice(0, index).filter(([other]) => other === producer).length
    const dataDir = folderOf.get(copies) ?? makeFolder()
    folderOf.set(copies, dataDir)
    const app = `App ${index}`
    const own = content.replaceAll('Claude Code', app).replaceAll('claude code', app.toLowerCase())
    return { producer, name, app, dataDir, content: name.endsWith('.gz') ? gzipSync(own) : own }
  })

  it.each(imported)('of $producer, $name, is imported by one command', async (each) => {
    const path = put(each.name, each.content)
    expect(await importAs(each.dataDir, '--from', each.producer, path)).toMatchObject({
      imported: [{ parts: [{ day: '2026-11-17', rows: 4 }] }],
    })
  })

  it('of each producer is in the next snapshot', async () => {
    for (const folder of folderOf.values()) {
      await runAt(folder, '2026-11-19T02:00:00Z')
      const figures =
        'SELECT app_name, requests, prompt_tokens, completion_tokens FROM app_daily JOIN apps USING (app_id) ORDER BY app_name'
      const apps = imported.filter(({ dataDir }) => dataDir === folder).map(({ app }) => app)
      const totals = { requests: '2', prompt_tokens: '300', completion_tokens: '30' }
      expect(await queryCurrent(folder, figures)).toEqual(
        apps.toSorted().map((app_name) => ({ app_name, ...totals })),
      )
    }
  })

  it('of a day that has one already adds to it, and replaces it only with --source, which is said', async () => {
    const dataDir = makeFolder()
    const take = async (name: string, options: readonly string[], ...tokens: readonly [string, number][]) => {
      const logs = tokens.map(([day, count]) => {
        const id = `${name} ${count}`
        return { id, created_at: `${day}T12:00:00Z`, tokens_in: count, tokens_out: 0, metadata: { app: 'A' } }
      })
      const path = put(`${name}.ndjson`, lines(...logs))
      const ended = await runCommand(dataDir, 'import', '--from', 'cloudflare', ...options, path)
      return ended.stdout.match(/date=\S+: \d+ rows?, in place of what the source brought/g)?.length ?? 0
    }
    await take('morning', [], ['2026-11-17', 1])
    await take('evening', [], ['2026-11-17', 2])
    const us = ['--source', 'us']
    expect(await take('first', us, ['2026-11-16', 10], ['2026-11-17', 20])).toBe(0)
    expect(await take('second', us, ['2026-11-17', 100], ['2026-11-17', 200], ['2026-11-18', 1000])).toBe(1)
    await runAt(dataDir, '2026-11-19T02:00:00Z')
    const days = await queryCurrent(dataDir, 'SELECT day, prompt_tokens FROM app_daily ORDER BY day')
    expect(days.map((day) => Object.values(day).join(' '))).toEqual([
      '2026-11-16 10',
      '2026-11-17 303',
      '2026-11-18 1000',
    ])
  })

  it.each([
    [
      'of another producer is rejected by its keys',
      'litellm',
      OPENROUTER,
      /a\.csv: 4 rows cannot be imported, the first is row 2: no time under startTime; the keys there are generation_id/,
    ],
    [
      'with usage that is not JSON is rejected',
      'langfuse',
      'id,type,start_time,usage_details\nl1,GENERATION,2026-11-17,"{""input"":"\n',
      /a\.csv: 1 row cannot be imported, the first is row 2: .* JSON/,
    ],
  ])('%s, with file and row', async (_, producer, content, message) => {
    const dataDir = makeFolder()
    const ended = await runCommand(dataDir, 'import', '--from', producer, put('a.csv', content))
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringMatching(message) })
    expect(readdirSync(dataDir)).toEqual([])
  })
})

const USAGE = 'app=shop prompt_tokens=100 completion_tokens=10 model=gpt-5'
const inShop = (...spans: readonly object[]) => ({ resourceSpans: [resourceOf('shop', [], spans)] })
const call = (others = '', changes: object = {}) => span(chat(100, 10, others), changes)
const helicone = (changes: object) => {
  const properties = { request_properties: { 'App-Name': 'shop' } }
  return { data: [{ ...rowsOf(HELICONE)[0], ...properties, ...changes }], error: null }
}
const [GENERATION = {}, ACTIVITY = {}] = rowsOf(`
{"id":"gen-1","created_at":"2026-11-17T03:36:01.789273+00:00","origin":"https://shop.example/","api_type":"completions","tokens_prompt":90,"tokens_completion":9,"native_tokens_prompt":100,"native_tokens_completion":10,"native_tokens_cached":3}
{"date":"2026-11-17","model":"openai/gpt-5","requests":7,"prompt_tokens":100,"completion_tokens":10,"reasoning_tokens":4}
`)
const SPENDS = 'acompletion aresponses anthropic_messages _arealtime pass_through_endpoint'.split(' ')
const OTHER_CALLS = 'call_mcp_tool acreate_file avector_store_search aocr asearch acreate_video'.split(' ')
const SIDES = { input: 100, output: 10, total: 110 }

/** The rows of usage as pairs, of which a test names some; what is skipped gives no row. */
type Form = readonly [form: string, document: object, rows: readonly string[]]

const FORMS: Readonly<Record<string, readonly Form[]>> = {
  otlp: [
    [
      'OpenLLMetry names the operation llm.request.type',
      inShop(
        span(
          'llm.request.type=chat gen_ai.system=Anthropic gen_ai.request.model=gpt-5 gen_ai.usage.prompt_tokens=100 ' +
            'gen_ai.usage.completion_tokens=10 gen_ai.usage.cache_read_input_tokens=60',
        ),
        span('llm.request.type=embedding gen_ai.request.model=e gen_ai.usage.prompt_tokens=7'),
        span('llm.request.type=rerank gen_ai.request.model=rank'),
        span('traceloop.span.kind=workflow traceloop.entity.name=answer'),
      ),
      [`${USAGE} provider=Anthropic cached_tokens=60`],
    ],
    [
      'the AI SDK has a span around each call, which names no model of the conventions',
      inShop(
        span('ai.operationId=ai.streamText ai.model.id=gpt-5 ai.usage.promptTokens=100'),
        span(
          'ai.operationId=ai.streamText.doStream gen_ai.request.model=gpt-5 gen_ai.response.model=gpt-5 ' +
            'gen_ai.usage.input_tokens={"doubleValue":100} gen_ai.usage.output_tokens=10 ' +
            'gen_ai.response.finish_reasons={"arrayValue":{"values":[{"stringValue":"stop"}]}}',
        ),
      ),
      [USAGE],
    ],
    [
      'Pydantic AI sums the tokens of the calls of an agent on the span of the agent',
      inShop(
        span('agent_name=helper model_name=gpt-5 gen_ai.usage.input_tokens=100'),
        call('gen_ai.usage.details.cache_read_tokens=60 gen_ai.usage.details.reasoning_tokens=4'),
      ),
      [`${USAGE} cached_tokens=60 reasoning_tokens=4`],
    ],
    [
      'LiteLLM has the type of the call',
      inShop(call('llm.request.type=acompletion'), call('llm.request.type=aembedding')),
      [USAGE],
    ],
    [
      'Semantic Kernel has its own name of the operation',
      inShop(call('gen_ai.operation.name=chat.completions')),
      [USAGE],
    ],
    [
      'a status may be a name',
      inShop(call('', { status: { code: 'STATUS_CODE_ERROR', message: 'overloaded' } })),
      [`${USAGE} requests=0`],
    ],
    [
      'ids in base64 are those in hex',
      inShop(call('', { traceId: 'W47/95gDgQPSabYzgT/GDA==', spanId: '7uGbfsPBsXQ=' })),
      [`${USAGE} request_id=5b8efff798038103d269b633813fc60c-eee19b7ec3c1b174`],
    ],
    ...Object.entries({
      'several scopes': { resourceSpans: [resourceOf('shop', [call()], []), resourceOf('shop')] },
      'a reply of Tempo': { batches: [resourceOf('shop', [call()])] },
      'a reply of its newer API': { trace: { resourceSpans: [resourceOf('shop', [call()])] } },
    }).map(([form, document]): Form => [form, document, [`${USAGE} ts=2025-11-17T03:36:01.789123456Z`]]),
    ...['resourceLogs', 'resourceMetrics'].map((key): Form => [
      `a line of ${key}`,
      { [key]: [{ ...resourceOf('shop'), scopeLogs: [] }] },
      [],
    ]),
    ...['unknown_service', 'unknown_service:python'].map((service): Form => [
      `the service ${service} names no app`,
      { resourceSpans: [resourceOf(service, [call()])] },
      [USAGE.replace('shop', '')],
    ]),
  ],
  helicone: [
    ...[
      'https://oai.helicone.ai/v1/embeddings',
      'https://example.openai.azure.com/openai/deployments/embed/embeddings?api-version=2024-02-01',
      'https://api.openai.com/v1/moderations',
      'https://generativelanguage.googleapis.com/v1beta/models/embed:batchEmbedContents',
      '/v1/embeddings',
    ].map((request_path): Form => [`a request to ${request_path}`, helicone({ request_path }), []]),
    ['a property names the app', helicone({}), [USAGE]],
    [
      'without a property the referrer does',
      helicone({ request_properties: null, request_referrer: 'https://shop.example/ask' }),
      [USAGE.replace('shop', 'https://shop.example/ask')],
    ],
    ['a status in CSV of pandas', helicone({ response_status: '200.0' }), [`${USAGE} requests=`]],
    ['a cancelled request has a negative status', helicone({ response_status: -3 }), [`${USAGE} requests=0`]],
    [
      'a stream without usage has no tokens',
      helicone({ prompt_tokens: null, completion_tokens: null, response_id: null }),
      ['app=shop prompt_tokens= completion_tokens='],
    ],
  ],
  openrouter: [
    [
      'the activity API has requests and names no app',
      { data: [ACTIVITY] },
      ['ts=2026-11-17 app= requests=7 prompt_tokens=100 reasoning_tokens=4'],
    ],
    [
      'a reply about one generation counts the tokens of its provider',
      { data: GENERATION },
      ['app=https://shop.example/ prompt_tokens=100 completion_tokens=10 cached_tokens=3'],
    ],
    [
      'a generation that failed counts no request',
      { data: { ...GENERATION, finish_reason: 'error' } },
      ['requests=0 prompt_tokens=100'],
    ],
    ...['embeddings', 'rerank', 'tts', 'stt', 'image', 'video'].map((api_type): Form => [
      `a generation of the type ${api_type}`,
      { ...GENERATION, api_type },
      [],
    ]),
  ],
  litellm: [
    [
      'a reply of the API, with failures before a call, and calls of tools, files and searches',
      {
        data: [...SPENDS, '', ...OTHER_CALLS].map((call_type) => {
          return { request_id: call_type, call_type, startTime: '2026-11-17T04:00:00Z' }
        }),
        total: 12,
      },
      [...SPENDS, ''].map((type) => `request_id=${type}`),
    ],
    [
      'what a log callback writes names the request by its id',
      { id: 'chatcmpl-1', call_type: 'acompletion', startTime: '2026-11-17T04:00:00Z', prompt_tokens: 100 },
      ['request_id=chatcmpl-1 prompt_tokens=100'],
    ],
  ],
  langfuse: [
    [
      'replies of its two APIs, and of servers that have no usage details',
      {
        data: [
          { model: 'gpt-5', usageDetails: SIDES },
          { providedModelName: 'gpt-5', usageDetails: SIDES },
          { model: 'gpt-5', usage: { unit: 'TOKENS', ...SIDES }, usageDetails: {} },
          { model: 'gpt-5', promptTokens: 100, completionTokens: 10, totalTokens: 110 },
        ].map((usage) => {
          const trace = { id: 'l1', startTime: '2026-11-17T03:36:01.789Z', traceName: 'shop' }
          return { type: 'GENERATION', ...trace, ...usage }
        }),
        meta: { page: 1, limit: 50, totalItems: 4, totalPages: 1 },
      },
      [USAGE, USAGE, USAGE, USAGE],
    ],
  ],
  cloudflare: [
    ['a reply about one log', { result: rowsOf(CLOUDFLARE)[0], success: true }, ['request_id=c1']],
  ],
}

describe.each(Object.entries(FORMS))('of %s, the rows of usage of', (producer, forms) => {
  it.each(forms)('%s', async (_form, document, rows) => {
    // As pandas writes whole numbers of a column with a null.
    const path = put('export.ndjson', lines(document).replaceAll(/:(\d+)(?=[,}])/g, ':$1.0'))
    const { first_rows } = await preview('--from', producer, path)
    const named = rows.map((row) => row.split(' ').map((pair) => pair.replace(/=.*/, '')))
    const found = first_rows.map((row, index) =>
      named[index]?.map((name) => `${name}=${row[name] ?? ''}`).join(' '),
    )
    expect(found).toEqual(rows)
  })
})

describe('--map', () => {
  const ROWS = lines(
    { at: 1_763_350_561_789, app: { title: 'One' }, in: '9007199254740993', out: 1 },
    { at: 1_763_350_561_999, app: { title: 'One' }, in: 2, out: 1 },
  )
  const PAIRS = 'ts=at:ms,app=app.title,prompt_tokens=in,completion_tokens=out'

  it('maps columns by pairs or by a file', async () => {
    const app = ['app.name', 'app.title']
    const columns = { ts: 'at', app, prompt_tokens: 'in', completion_tokens: 'out' }
    const map = { columns, unit: 'ms', failed: [{ path: 'out', is: ['7'] }] }
    const first = { ts: '2025-11-17T03:36:01.789Z', app: 'One', prompt_tokens: '9007199254740993' }
    for (const value of [PAIRS, put('map.json', JSON.stringify(map))])
      expect(await preview('--map', value, put('rows.ndjson', ROWS))).toMatchObject({
        parts: [{ day: '2025-11-17', prompt_tokens: '9007199254740995' }],
        first_rows: [first, { ts: '2025-11-17T03:36:01.999Z' }],
      })
  })

  it('takes precedence over the map of a producer', async () => {
    const map = ['--from', 'openrouter', '--map', 'app=api_key_name']
    const { first_rows } = await preview(...map, put('a.csv', OPENROUTER))
    expect(first_rows.map(({ app }) => app)).toEqual(['prod', 'prod', 'prod', 'prod'])
  })

  it.each([
    [['--map', 'ts=at,app=x'], 'The map has no path for prompt_tokens, completion_tokens'],
    [['--map', 'ts=at,prompt_tokens=p,completion_tokens=c'], 'The map has no path for app or app_id'],
    [['--map', 'time=at'], 'Unrecognized key: "time"'],
    [['--map', 'time=at'], 'Expected each of these columns once, with its path: ts, app_id'],
    [['--map', 'ts=at,ts=in'], 'It has the column ts twice'],
    [['--map', 'ts=,app=x'], 'The map ts=,app=x is wrong'],
    [['--map', 'nowhere.json'], 'The map nowhere.json cannot be read'],
    [
      ['--from', 'nobody'],
      '--from: Expected litellm, openrouter, cloudflare, langfuse, helicone, otlp, not "nobody"',
    ],
    [['--source', '../x'], '--source: Expected a name of up to 40 letters'],
  ])('%j is refused: %s', async (options, message) => {
    const ended = await runCommand(makeFolder(), 'import', ...options, put('rows.ndjson', ROWS))
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(message) })
  })

  it.each([
    [
      'a time that is a number without a unit',
      PAIRS.replace(':ms', ''),
      'say what it counts, such as --map ts=PATH:ms',
    ],
    ['a time of another unit', PAIRS.replace(':ms', ':s'), 'ts "1763350561789" is not a UTC timestamp'],
    [
      'a path that no row of a day has',
      PAIRS.replace('in', 'tokens.in'),
      'WARNING 2025-11-17: no row has prompt_tokens. If',
    ],
  ])('names %s', async (_, map, message) => {
    const ended = await runCommand(makeFolder(), 'import', '--map', map, put('rows.ndjson', ROWS))
    expect(ended.stdout + ended.stderr).toContain(message)
  })

  it('reads Parquet with numbers that JSON has not', async () => {
    const columns = { ts: ['2026-11-17'], app: ['One'], in: [5n], out: [1n], cost: [NaN] }
    const path = put('nan.parquet', rawFile('parquet', Object.entries(columns)))
    const map = PAIRS.replace('at:ms', 'ts').replace('app.title', 'app')
    expect(await preview('--map', map, path)).toMatchObject({ parts: [{ prompt_tokens: '5' }] })
  })

  it('refuses a column of Parquet that would be misread', async () => {
    const wide = {
      type: 'FIXED_LEN_BYTE_ARRAY',
      type_length: 21,
      converted_type: 'DECIMAL',
      precision: 50,
    } as const
    const path = put('wide.parquet', parquetOf([['in', { ...wide, scale: 0 }, [3n]]]))
    const ended = await runCommand(makeFolder(), 'import', '--map', PAIRS, path)
    const message =
      'the column in is of type DECIMAL of 50 digits, which cannot be read: write it as BIGINT, or leave it out'
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining(message) })
  })

  it('adds the counts of several paths, of which some may be missing', async () => {
    const rows = [
      { at: '2026-11-17T10:00:00Z', in: 3, read: 5758, made: 6174 },
      { at: '2026-11-17T11:00:00Z', in: 4 },
      // A broken count stays visible: the run rejects the row.
      { at: '2026-11-17T12:00:00Z', in: 4, read: -3 },
    ]
    const path = put('parts.ndjson', lines(...rows.map((row) => ({ ...row, app: 'One', out: 1 }))))
    const map = 'ts=at,app=app,prompt_tokens=in+read+made,completion_tokens=out,cached_tokens=read'
    expect(await preview('--map', map, path)).toMatchObject({
      parts: [{ rows: 3, prompt_tokens: '11939', rows_large_parts: 0 }],
    })
  })

  it('with another time moves the rows of a file to other days', async () => {
    const dataDir = makeFolder()
    const path = put('times.ndjson', lines({ a: '2026-11-16', b: '2026-11-17', app: 'One', in: 5, out: 1 }))
    for (const time of ['a', 'b']) {
      const map = `ts=${time},app=app,prompt_tokens=in,completion_tokens=out`
      await runCommand(dataDir, 'import', '--map', map, path)
    }
    expect(globSync('**/*.parquet', { cwd: dataDir })).toEqual([expect.stringContaining('date=2026-11-17')])
  })

  it('takes a word that means null for no request_id and no app, and an exponent for a count, as a run does', async () => {
    const rows = ['\\N', 'NULL', 'null', 'NA'].map((word) => `2026-11-17,${word},5e+00,1,${word}\n`)
    const path = put('words.csv', `at,name,in,out,id\n${rows.join('')}`)
    const map = 'ts=at,app=name,prompt_tokens=in,completion_tokens=out,request_id=id'
    const row = { ts: '2026-11-17', app: '', prompt_tokens: '5e+00', completion_tokens: '1' }
    expect(await preview('--map', map, path)).toMatchObject({
      parts: [{ rows_without_id: 4, prompt_tokens: '20' }],
      first_rows: rows.map(() => row),
    })
  })
})

describe('a warning', () => {
  const csv = (...rows: readonly string[]) =>
    put(
      'a.csv',
      `ts,app,prompt_tokens,completion_tokens\n${rows.map((row) => `2026-11-17,${row}\n`).join('')}`,
    )

  it('names a second file of a day without request_id and source, and tokens without an app', async () => {
    const dataDir = makeFolder()
    const warningsOf = async (...rows: readonly string[]) =>
      (await runCommand(dataDir, 'import', csv(...rows))).stdout.match(/(?<=WARNING 2026-11-17: ).*/g)
    expect(await warningsOf('One,1,0')).toBeNull()
    expect(await warningsOf(',5,5', 'One,9,0')).toEqual([
      expect.stringMatching(/^other files have usage of this day, and 2 rows here have no request_id/),
      expect.stringMatching(/^10 of 19 tokens name no app/),
    ])
    expect(await warningsOf('One,NULL,\\N')).toContainEqual(
      expect.stringMatching(/^no row has prompt_tokens and completion_tokens/),
    )
  })

  it('names cached tokens above the prompt, in the import and in the run', async () => {
    const dataDir = makeFolder()
    const path = put(
      'spans.json',
      lines(inShop(span(chat(3, 10, 'gen_ai.usage.cache_read.input_tokens=5758')))),
    )
    const ended = await runCommand(dataDir, 'import', '--from', 'otlp', path)
    const message = 'are more than the count that contains them in 1 row'
    expect(ended.stdout).toContain(message)
    const run = await runCommand(dataDir, 'run', '--as-of', '2026-11-19T02:00:00Z')
    expect(run.stderr).toContain(`${message}s, and are left out there`)
  })
})
