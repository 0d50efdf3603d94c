/**
 * Runs one client in its own process: `node program.js CLIENT BASE KEY`; CHAT_CLIENTS names the folder of the packages.
 * Prints each model's result as JSON. No client retries.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'

const load = createRequire(join(process.env.CHAT_CLIENTS, 'index.js'))
// Packages of the project.
const loadOwn = createRequire(import.meta.url)
const [client, base, key] = process.argv.slice(2)

const messages = [{ role: 'user', content: 'Say hello' }]
const { z } = load('zod')
const parameters = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }
const tool = {
  type: 'function',
  function: { name: 'read_file', description: 'Reads', parameters },
}

async function textOf(chunks, contentOf) {
  let text = ''
  for await (const chunk of chunks) text += contentOf(chunk) ?? ''
  return text
}

const parsed = (calls) =>
  calls.map(({ function: { name, arguments: text } }) => [
    name,
    typeof text === 'string' ? JSON.parse(text) : text,
  ])
/** The calls of a stream, whose client leaves it to the caller to join their parts. */
async function joined(chunks, partsOf) {
  const calls = []
  for await (const chunk of chunks) {
    for (const { index = 0, function: part } of partsOf(chunk) ?? []) {
      const call = (calls[index] ??= { function: { name: '', arguments: '' } })
      call.function.name += part?.name ?? ''
      call.function.arguments += part?.arguments ?? ''
    }
  }
  return parsed(calls)
}
const calledByAi = (calls) => calls.map(({ toolName, input }) => [toolName, input])
const calledByLangchain = ({ tool_calls: calls }) => calls.map(({ name, args }) => [name, args])

function openai() {
  const { OpenAI } = loadOwn('openai')
  const { completions } = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 }).chat
  return {
    plain: async (model) => (await completions.create({ model, messages })).choices[0].message.content,
    streamed: async (model) =>
      await textOf(
        await completions.create({ model, messages, stream: true }),
        (chunk) => chunk.choices[0]?.delta.content,
      ),
    tools: async (model) =>
      parsed((await completions.create({ model, messages, tools: [tool] })).choices[0].message.tool_calls),
    streamedTools: async (model) =>
      parsed((await completions.stream({ model, messages, tools: [tool] }).finalMessage()).tool_calls),
  }
}

function openrouter() {
  const { OpenRouter } = loadOwn('@openrouter/sdk')
  const { chat } = new OpenRouter({ serverURL: base, apiKey: key, retryConfig: { strategy: 'none' } })
  const send = (chatRequest) => chat.send({ chatRequest })
  return {
    plain: async (model) => (await send({ model, messages })).choices[0].message.content,
    streamed: async (model) =>
      await textOf(await send({ model, messages, stream: true }), ({ choices, error }) => {
        if (error !== undefined) throw Object.assign(new Error(error.message), { status: error.code })
        return choices[0]?.delta.content
      }),
    tools: async (model) =>
      parsed((await send({ model, messages, tools: [tool] })).choices[0].message.toolCalls),
    streamedTools: async (model) =>
      await joined(
        await send({ model, messages, tools: [tool], stream: true }),
        ({ choices }) => choices[0]?.delta.toolCalls,
      ),
  }
}

/** The AI SDK over one of its provider packages. */
function ai(modelOf) {
  const { generateText, streamText, tool: toolOf } = load('ai')
  const asked = (model) => ({ model: modelOf(model), prompt: 'Say hello', maxRetries: 0 })
  const tools = { read_file: toolOf({ description: 'Reads', inputSchema: z.object({ a: z.number() }) }) }
  async function readStream(model, more = {}) {
    let failure
    const stream = streamText({ ...asked(model), ...more, onError: ({ error }) => (failure = error) })
    const text = await textOf(stream.textStream, (part) => part)
    if (failure !== undefined) throw failure
    return { text, calls: await stream.toolCalls }
  }
  return {
    plain: async (model) => (await generateText(asked(model))).text,
    streamed: async (model) => (await readStream(model)).text,
    tools: async (model) => calledByAi((await generateText({ ...asked(model), tools })).toolCalls),
    streamedTools: async (model) => calledByAi((await readStream(model, { tools })).calls),
  }
}

function langchain() {
  const { ChatOpenAI } = load('@langchain/openai')
  const chat = (model) =>
    new ChatOpenAI({ model, apiKey: key, maxRetries: 0, configuration: { baseURL: base } })
  return {
    plain: async (model) => (await chat(model).invoke('Say hello')).content,
    streamed: async (model) => await textOf(await chat(model).stream('Say hello'), ({ content }) => content),
    tools: async (model) => calledByLangchain(await chat(model).bindTools([tool]).invoke('Say hello')),
    async streamedTools(model) {
      const parts = await Array.fromAsync(await chat(model).bindTools([tool]).stream('Say hello'))
      return calledByLangchain(parts.reduce((whole, part) => whole.concat(part)))
    },
  }
}

function mistral() {
  const { Mistral } = load('@mistralai/mistralai')
  // The client appends the version to the address.
  const { chat } = new Mistral({ serverURL: base.replace(/\/v1$/, ''), apiKey: key })
  return {
    plain: async (model) => (await chat.complete({ model, messages })).choices[0].message.content,
    streamed: async (model) =>
      await textOf(await chat.stream({ model, messages }), ({ data: { choices } }) => {
        // The client reads only this member of the error.
        if (choices[0]?.finishReason === 'error') throw new Error('The stream failed')
        return choices[0]?.delta.content
      }),
    tools: async (model) =>
      parsed((await chat.complete({ model, messages, tools: [tool] })).choices[0].message.toolCalls),
    streamedTools: async (model) =>
      await joined(
        await chat.stream({ model, messages, tools: [tool] }),
        ({ data }) => data.choices[0]?.delta.toolCalls,
      ),
  }
}

function agents() {
  const sdk = load('@openai/agents')
  const { OpenAI } = loadOwn('openai')
  sdk.setDefaultOpenAIClient(new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 }))
  sdk.setOpenAIAPI('chat_completions')
  sdk.setTracingDisabled(true)
  async function run(model, stream) {
    const called = []
    const execute = (input) => {
      called.push(['read_file', input])
      return 'done'
    }
    const name = 'read_file'
    const schema = z.object({ a: z.number() })
    const read = sdk.tool({ name, description: 'Reads', parameters: schema, execute })
    const toolUseBehavior = 'stop_on_first_tool'
    const agent = new sdk.Agent({ name: 'agent', model, tools: [read], toolUseBehavior })
    const result = await sdk.run(agent, 'Say hello', { stream })
    if (stream) {
      await Array.fromAsync(result)
      await result.completed
    }
    return { called, output: result.finalOutput }
  }
  return {
    plain: async (model) => (await run(model, false)).output,
    streamed: async (model) => (await run(model, true)).output,
    tools: async (model) => (await run(model, false)).called,
    streamedTools: async (model) => (await run(model, true)).called,
  }
}

function huggingface() {
  const { InferenceClient } = load('@huggingface/inference')
  const inference = new InferenceClient(key, { endpointUrl: base })
  return {
    plain: async (model) => (await inference.chatCompletion({ model, messages })).choices[0].message.content,
    streamed: async (model) =>
      await textOf(
        inference.chatCompletionStream({ model, messages }),
        (chunk) => chunk.choices[0]?.delta.content,
      ),
    tools: async (model) =>
      parsed(
        (await inference.chatCompletion({ model, messages, tools: [tool] })).choices[0].message.tool_calls,
      ),
    streamedTools: async (model) =>
      await joined(
        inference.chatCompletionStream({ model, messages, tools: [tool] }),
        ({ choices }) => choices[0]?.delta.tool_calls,
      ),
  }
}

const CLIENTS = {
  openai,
  '@openrouter/sdk': openrouter,
  'ai with @ai-sdk/openai-compatible': () =>
    ai(
      load('@ai-sdk/openai-compatible').createOpenAICompatible({
        name: 'router',
        baseURL: base,
        apiKey: key,
      }),
    ),
  'ai with @openrouter/ai-sdk-provider': () => {
    const provider = load('@openrouter/ai-sdk-provider').createOpenRouter({ baseURL: base, apiKey: key })
    return ai((model) => provider.chat(model))
  },
  '@langchain/openai': langchain,
  '@mistralai/mistralai': mistral,
  '@openai/agents': agents,
  '@huggingface/inference': huggingface,
}

/** The HTTP status of a client's error. */
function statusOf(error) {
  const told = [error, error.cause, error.httpResponse, error.lastError].filter(Boolean)
  return told.map((one) => one.status ?? one.statusCode).find((status) => status !== undefined) ?? null
}

const attempt = (work) =>
  work.then(
    (value) => value,
    (error) => ({
      failed: statusOf(error),
      message: `${error.message} ${JSON.stringify(error.httpResponse?.body)}`,
    }),
  )

// Mistral's client needs the name in every part of a call, which other clients reject or append.
const streamedModel = client === '@mistralai/mistralai' ? 'a/undivided' : 'a/tools'

const { plain, streamed, tools, streamedTools } = CLIENTS[client]()
const results = {
  plain: await attempt(plain('a/hello')),
  streamed: await attempt(streamed('a/hello')),
  tools: await attempt(tools('a/tools')),
  streamedTools: await attempt(streamedTools(streamedModel)),
  refused: await attempt(plain('a/refused')),
  refusedStream: await attempt(streamed('a/refused')),
  broken: await attempt(plain('a/broken')),
  cutStream: await attempt(streamed('a/cut')),
}
process.stdout.write(JSON.stringify(results))
// Some clients keep connections open.
process.exit(0)
