/**
 * CONTRACT 6: Clients in JavaScript, Go, Python and Java against the router over a scripted provider: plain, streamed,
 * tools, silence, errors and a break, and the standard tests of LangChain. Most are no dependencies of the project:
 * CHAT_CLIENTS names a folder with what .ci/chat-clients/ lists, as .ci/run installs it.
 */
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startScriptedChat, type ScriptedChat } from '../../../../support/chat/chat.ts'
import { LONG } from '../../../../support/long.ts'
import { startProcess } from '../../../../support/processes.ts'
import { findProgram, hasFolder } from '../../../../support/programs.ts'
import {
  answers,
  chunk,
  chunksOf,
  completion,
  counted,
  cutAfter,
  either,
  endsWith,
  events,
  inTurn,
  json,
  status,
  type Behaviour,
} from '../../../../support/chat/upstream.ts'

const INSTALLED = process.env['CHAT_CLIENTS'] ?? ''
const scriptNamed = (name: string) => join(import.meta.dirname, name)

const PACKAGES = [
  'openai',
  '@openrouter/sdk',
  'ai with @ai-sdk/openai-compatible',
  'ai with @openrouter/ai-sdk-provider',
  '@langchain/openai',
  '@mistralai/mistralai',
  '@openai/agents',
  '@huggingface/inference',
]

/** Each client's program in a folder of CHAT_CLIENTS, and its script. */
const PROGRAMS: readonly (readonly [client: string, folder: string, program: string, ...script: string[]])[] =
  [
    ['openai-go', 'bin', 'go-clients'],
    ['openai-go 3.8', 'bin', 'go-clients-old'],
    ['go-openai', 'bin', 'go-clients'],
    ['openai for Python', 'venv/bin', 'python', scriptNamed('program.py')],
    ['openai-java', 'java', 'java', '-cp', `${INSTALLED}/java:${INSTALLED}/java/*`, 'Client'],
  ]

/** After such a silence a stream gets a chunk without content. */
const SILENCE_MS = 100

const thought = { reasoning_content: 'hm' }
// Id and name in every part, no type, and a finish that mentions no call: each breaks one of the clients when passed on
// raw.
const call = (more: string) => ({
  index: 0,
  id: 'call_1',
  type: null,
  function: { name: 'read_file', arguments: more },
})
const part = (more: string) => chunk({ tool_calls: [call(more)] })

const actingSchema = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
  tools: z
    .array(z.looseObject({ function: z.looseObject({ name: z.string(), parameters: z.unknown() }) }))
    .default([]),
  tool_choice: z
    .union([z.string(), z.looseObject({ function: z.looseObject({ name: z.string() }) })])
    .optional(),
  response_format: z
    .looseObject({ json_schema: z.looseObject({ schema: z.unknown() }).optional() })
    .optional(),
})
const parametersSchema = z.looseObject({
  properties: z.record(z.string(), z.looseObject({ type: z.string().optional() })).default({}),
})

/** Acts as a model: calls the tool that is offered or wanted, fills a form that is asked for, or says hello. */
const acting: Behaviour = async (response, received) => {
  const { messages, tools, tool_choice: choice, response_format: format } = actingSchema.parse(received.body)
  const last = messages.at(-1)
  const quoted = /'([^']+)'/.exec(JSON.stringify(last?.content))?.[1] ?? 'x'
  const filled = (schema: unknown) =>
    JSON.stringify(
      Object.fromEntries(
        Object.entries(parametersSchema.parse(schema).properties).map(([key, { type }]) => [
          key,
          type === 'integer' || type === 'number' ? 3 : quoted,
        ]),
      ),
    )
  const wanted = typeof choice === 'object' ? choice.function.name : undefined
  const tool = tools.find((one) => one.function.name === wanted) ?? tools[0]
  if (tool !== undefined && last?.role !== 'tool') {
    const { name, parameters: schema } = tool.function
    const made = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: filled(schema) } }
    const whole = completion({ content: null, tool_calls: [made] }, 'tool_calls')
    const chunks = [chunk({ tool_calls: [made] }), chunk({}, 'tool_calls'), counted()]
    await either(json(whole), endsWith(...chunks))(response, received)
  } else {
    const said = format === undefined ? 'Hello' : filled(format.json_schema?.schema ?? {})
    await answers(said.split(''))(response, received)
  }
}

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  hello: either(
    json(completion({ content: 'Hello', ...thought }, null)),
    // Silent for long enough that the router sends chunks without content.
    inTurn(
      SILENCE_MS * 2,
      events(chunk(thought), chunk({ content: 'Hel' })),
      SILENCE_MS * 2,
      endsWith(...chunksOf(['lo'])),
    ),
  ),
  tools: either(
    json(completion({ tool_calls: [call('{"a":1}')] })),
    endsWith(part(''), part('{"a"'), part(':1}'), chunk({}, 'stop')),
  ),
  undivided: endsWith(part('{"a":1}'), chunk({}, 'stop')),
  refused: status(400, { error: { message: "This model's maximum context length is 8192 tokens." } }),
  broken: status(500),
  cut: cutAfter(chunk({ content: 'Hel' })),
  acting,
}

const failedSchema = z.object({ failed: z.int().nullable(), message: z.string() })
const resultsSchema = z.strictObject({
  plain: z.unknown(),
  streamed: z.unknown(),
  tools: z.unknown(),
  streamedTools: z.unknown(),
  refused: failedSchema,
  refusedStream: failedSchema,
  broken: failedSchema,
  cutStream: failedSchema,
})

describe.runIf(hasFolder('CHAT_CLIENTS'))('the client', () => {
  let chat: ScriptedChat
  beforeAll(async () => {
    chat = await startScriptedChat({
      behaviours: BEHAVIOURS,
      models: Object.fromEntries(Object.keys(BEHAVIOURS).map((model) => [`a/${model}`, [{ model }]])),
      chat: { silenceMs: SILENCE_MS },
    })
  })

  async function check(program: string, args: readonly string[]) {
    const before = chat.upstream.received.length
    const toRouter = [`${chat.api.origin}/api/v1`, chat.api.key]
    const { code, stdout, stderr } = await startProcess(program, [...args, ...toRouter]).ended
    expect(code, stderr).toBe(0)
    expect(resultsSchema.parse(JSON.parse(stdout))).toMatchObject({
      plain: 'Hello',
      streamed: 'Hello',
      tools: [['read_file', { a: 1 }]],
      streamedTools: [['read_file', { a: 1 }]],
      refused: { failed: 400, message: expect.stringContaining('exceeds the maximum context length') },
      refusedStream: { failed: 400 },
      broken: { failed: 502, message: expect.stringContaining('No provider served the request') },
    })
    // Each called the provider once: no client resends a rejected request.
    expect(chat.upstream.received.length - before).toBe(8)
  }

  it.each(PACKAGES)('%s reads answers, streams, tool calls and errors', async (client) => {
    await check(process.execPath, [scriptNamed('program.js'), client])
  })

  for (const [client, folder, name, ...script] of PROGRAMS) {
    const program = findProgram(name, [join(INSTALLED, folder)]) ?? ''
    it.runIf(program !== '')(`${client} does too`, () => check(program, [...script, client]))
  }

  const pytest = findProgram('pytest', [join(INSTALLED, 'venv/bin')]) ?? ''
  it.runIf(pytest !== '')('of LangChain for Python passes the tests of chat models', LONG, async () => {
    const environment = { BASE: `${chat.api.origin}/api/v1`, KEY: chat.api.key }
    const options = '-q -p no:cacheprovider -o asyncio_mode=auto -o asyncio_default_test_loop_scope=session'
    const args = [...options.split(' '), scriptNamed('test_langchain.py')]
    const { stdout: report } = await startProcess(pytest, args, { environment }).ended
    expect(report.trim().split('\n').at(-1), report).toMatch(/^\d\d passed/)
  })
})
