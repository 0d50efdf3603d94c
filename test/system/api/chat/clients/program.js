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

const prompt = 'Say hello'
const messages = [{ role: 'user', content: prompt }]
const parameters = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }
const tools = [{ type: 'function', function: { name: 'read_file', description: 'Reads', parameters } }]
const { z } = load('zod')
const schema = z.object({ a: z.number() })

/** The calls of a message or a part of one; some clients write in camel case. */
const callsOf = ({ tool_calls: calls, toolCalls = calls }) => toolCalls ?? []

/** The text of a message, with the name and the arguments of each call. */
const read = (message) => ({
  content: message.content,
  calls: callsOf(message).map(({ function: { name, arguments: text } }) => [
    name,
    typeof text === 'string' ? JSON.parse(text) : text,
  ]),
})

/** Likewise of a stream, whose client leaves it to the caller to join the parts. */
async function joined(chunks, deltaOf) {
  const message = { content: '', toolCalls: [] }
  for await (const chunk of chunks) {
    const delta = deltaOf(chunk) ?? {}
    message.content += delta.content ?? ''
    for (const { index = 0, function: part } of callsOf(delta)) {
      const call = (message.toolCalls[index] ??= { function: { name: '', arguments: '' } })
      call.function.name += part?.name ?? ''
      call.function.arguments += part?.arguments ?? ''
    }
  }
  return read(message)
}

function openai() {
  const { OpenAI } = loadOwn('openai')
  const { completions } = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 }).chat
  return async (request, streams) =>
    read(
      streams
        ? await completions.stream(request).finalMessage()
        : (await completions.create(request)).choices[0].message,
    )
}

function openrouter() {
  const { OpenRouter } = loadOwn('@openrouter/sdk')
  const { chat } = new OpenRouter({ serverURL: base, apiKey: key, retryConfig: { strategy: 'none' } })
  return async (request, stream) => {
    const reply = await chat.send({ chatRequest: { ...request, stream } })
    if (!stream) return read(reply.choices[0].message)
    return joined(reply, ({ choices, error }) => {
      if (error !== undefined) throw Object.assign(new Error(error.message), { status: error.code })
      return choices[0]?.delta
    })
  }
}

/** The AI SDK over one of its provider packages. */
function ai(modelOf) {
  const { generateText, streamText, tool } = load('ai')
  const own = { read_file: tool({ description: 'Reads', inputSchema: schema }) }
  return async ({ model }, streams) => {
    const request = { model: modelOf(model), prompt, tools: own, maxRetries: 0 }
    let failure
    const onError = ({ error }) => (failure = error)
    const reply = streams ? streamText({ ...request, onError }) : await generateText(request)
    if (streams) await reply.consumeStream()
    if (failure !== undefined) throw failure
    const calls = await reply.toolCalls
    return { content: await reply.text, calls: calls.map(({ toolName, input }) => [toolName, input]) }
  }
}

function langchain() {
  const { ChatOpenAI } = load('@langchain/openai')
  return async ({ model }, streams) => {
    const options = { model, apiKey: key, maxRetries: 0, configuration: { baseURL: base } }
    const chat = new ChatOpenAI(options).bindTools(tools)
    const parts = streams ? await Array.fromAsync(await chat.stream(prompt)) : [await chat.invoke(prompt)]
    const { content, tool_calls: calls = [] } = parts.reduce((whole, part) => whole.concat(part))
    return { content, calls: calls.map(({ name, args }) => [name, args]) }
  }
}

function mistral() {
  const { Mistral } = load('@mistralai/mistralai')
  // The client appends the version to the address.
  const { chat } = new Mistral({ serverURL: base.replace(/\/v1$/, ''), apiKey: key })
  return async (request, streams) => {
    if (!streams) return read((await chat.complete(request)).choices[0].message)
    return joined(await chat.stream(request), ({ data: { choices } }) => {
      // The client reads only this member of the error.
      if (choices[0]?.finishReason === 'error') throw new Error('The stream failed')
      return choices[0]?.delta
    })
  }
}

function agents() {
  const sdk = load('@openai/agents')
  const { OpenAI } = loadOwn('openai')
  sdk.setDefaultOpenAIClient(new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 }))
  sdk.setOpenAIAPI('chat_completions')
  sdk.setTracingDisabled(true)
  return async ({ model }, stream) => {
    const calls = []
    const execute = (input) => {
      calls.push(['read_file', input])
      return 'done'
    }
    const own = sdk.tool({ name: 'read_file', description: 'Reads', parameters: schema, execute })
    const toolUseBehavior = 'stop_on_first_tool'
    const agent = new sdk.Agent({ name: 'agent', model, tools: [own], toolUseBehavior })
    const result = await sdk.run(agent, prompt, { stream })
    if (stream) {
      await Array.fromAsync(result)
      await result.completed
    }
    return { content: result.finalOutput, calls }
  }
}

function huggingface() {
  const { InferenceClient } = load('@huggingface/inference')
  const inference = new InferenceClient(key, { endpointUrl: base })
  return async (request, streams) =>
    streams
      ? joined(inference.chatCompletionStream(request), ({ choices }) => choices[0]?.delta)
      : read((await inference.chatCompletion(request)).choices[0].message)
}

/** Each client asks with `(request, streams)`, and resolves to a message as `read` gives it. */
const CLIENTS = {
  openai,
  '@openrouter/sdk': openrouter,
  'ai with @ai-sdk/openai-compatible': () => {
    const { createOpenAICompatible } = load('@ai-sdk/openai-compatible')
    return ai(createOpenAICompatible({ name: 'router', baseURL: base, apiKey: key }))
  },
  'ai with @openrouter/ai-sdk-provider': () =>
    ai(load('@openrouter/ai-sdk-provider').createOpenRouter({ baseURL: base, apiKey: key }).chat),
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

const ask = CLIENTS[client]()

async function attempt(model, part, streams = false) {
  try {
    return (await ask({ model, messages, tools }, streams))[part]
  } catch (error) {
    const message = `${error.message} ${JSON.stringify(error.httpResponse?.body)}`
    return { failed: statusOf(error), message }
  }
}

// Mistral's client needs the name in every part of a call, which other clients reject or append.
const streamedTools = client === '@mistralai/mistralai' ? 'a/undivided' : 'a/tools'

const results = {
  plain: await attempt('a/hello', 'content'),
  streamed: await attempt('a/hello', 'content', true),
  tools: await attempt('a/tools', 'calls'),
  streamedTools: await attempt(streamedTools, 'calls', true),
  refused: await attempt('a/refused', 'content'),
  refusedStream: await attempt('a/refused', 'content', true),
  broken: await attempt('a/broken', 'content'),
  cutStream: await attempt('a/cut', 'content', true),
}
process.stdout.write(JSON.stringify(results))
// Some clients keep connections open.
process.exit(0)
