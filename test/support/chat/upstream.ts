/** A scripted provider on real sockets; the script depends on the requested model. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { z } from 'zod'
import { listen } from '../ports.ts'

const bodySchema = z.looseObject({ model: z.string(), stream: z.boolean().optional() })

/** A request as the provider received it. */
type Received = {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: z.infer<typeof bodySchema>
  /** The raw body. */
  readonly text: string
}

/** The provider's behaviour for one of its models. */
export type Behaviour = (response: ServerResponse, received: Received) => void | Promise<void>

/** Starts a provider; `behaviours`, by model, may be changed at any time. */
export async function startUpstream(behaviours: Record<string, Behaviour>) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 1000

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await text(request)
    const body = bodySchema.parse(JSON.parse(sent))
    const one = { method: request.method, path: request.url, headers: request.headers, body, text: sent }
    received.push(one)
    const behave = behaviours[body.model] ?? status(404, { error: { message: 'no such model' } })
    await behave(response, one)
  }

  const listening = await listen(server)
  return {
    ...listening,
    url: `http://127.0.0.1:${listening.port}/v1`,
    behaviours,
    /** All requests so far. */
    received,
    /** The models of all requests so far, in order. */
    asked: () => received.map(({ body }) => body.model),
    connections: () => promisify(server.getConnections.bind(server))(),
  }
}

type Members = Readonly<Record<string, unknown>>

export const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
const HEAD = { id: 'chatcmpl-1', created: 1_760_000_000, model: 'upstream-name' }
const HELLO = { role: 'assistant', content: 'Hello' }

/** A completion in the form of providers. */
export function completion(message: unknown = HELLO, finish: unknown = 'stop', more: Members = {}) {
  const choices = [{ index: 0, message, finish_reason: finish }]
  return { ...HEAD, object: 'chat.completion', choices, usage: USAGE, ...more }
}

/** A chunk in the form of providers. */
export function chunk(delta: unknown, finish: unknown = null, more: Members = {}) {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return { ...HEAD, object: 'chat.completion.chunk', choices, ...more }
}

/** A last chunk with the usage alone. */
export const counted = (usage: unknown = USAGE) => chunk({}, null, { choices: [], usage })

/** The chunks of a complete stream in OpenAI's form. */
export function chunksOf(words: readonly string[], usage: unknown = USAGE): unknown[] {
  return [
    chunk({ role: 'assistant', content: '' }, null, { usage: null }),
    ...words.map((content) => chunk({ content }, null, { usage: null })),
    chunk({}, 'stop', { usage: null }),
    counted(usage),
  ]
}

/** The text of server-sent events with these data. */
export function sse(data: readonly unknown[], done = true): string {
  const events = data.map((one) => `data: ${typeof one === 'string' ? one : JSON.stringify(one)}\n\n`)
  return events.join('') + (done ? 'data: [DONE]\n\n' : '')
}

/** Replies with this JSON. */
export const json = (body: unknown) => status(200, body)

/** Replies with this status. */
export function status(
  code: number,
  body: unknown = { error: { message: `secret of ${code}` } },
  headers = {},
): Behaviour {
  return (response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(body))
  }
}

/** What a client gets that requests this: `whole`, or `streamed`. */
export function either(whole: Behaviour, streamed: Behaviour): Behaviour {
  return (response, received) => (received.body.stream === true ? streamed : whole)(response, received)
}

/** A behaviour in two steps; `goOn` lets the latest request go on. */
export function held(begin: Behaviour, end: Behaviour): { behaviour: Behaviour; goOn: () => void } {
  let release = () => {}
  return {
    goOn: () => release(),
    async behaviour(response, received) {
      const { promise, resolve } = Promise.withResolvers<void>()
      release = resolve
      await begin(response, received)
      await promise
      await end(response, received)
    },
  }
}

/** Does one thing after another; a number is a pause in milliseconds. */
export function inTurn(...steps: readonly (Behaviour | number)[]): Behaviour {
  return async (response, received) => {
    for (const step of steps) await (typeof step === 'number' ? sleep(step) : step(response, received))
  }
}

/** Writes this text of a stream. */
export function writes(part: string): Behaviour {
  return (response) => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    response.write(part)
  }
}

/** Writes these chunks of a stream. */
export const events = (...chunks: readonly unknown[]) => writes(sse(chunks, false))

/** Ends a stream with these chunks and [DONE]. */
export const endsWith = (...chunks: readonly unknown[]) => ends(sse(chunks))

/** Ends a reply with this text. */
export function ends(rest: string): Behaviour {
  return (response) => void response.end(rest)
}

/** Streams this text as events; `size` is that of each write in bytes. */
export function stream(body: string, size = Infinity): Behaviour {
  return async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const bytes = Buffer.from(body)
    for (let start = 0; start < bytes.length; start += size) {
      response.write(bytes.subarray(start, start + size))
      if (size < bytes.length) await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  }
}

/** Breaks the connection after these chunks, which must arrive before. */
export const cutAfter = (...chunks: readonly unknown[]) =>
  inTurn(events(...chunks), 20, (response) => void response.destroy())

/** Answers with a completion, or a stream of the same words. */
export function answers(words: readonly string[] = ['Hel', 'lo']): Behaviour {
  return either(json(completion({ content: words.join('') })), endsWith(...chunksOf(words)))
}

/** Breaks the connection without a reply. */
export const reset: Behaviour = (response) => void response.socket?.resetAndDestroy()

/** Closes the connection without a reply. */
export const hangUp: Behaviour = (response) => void response.socket?.end()

/** Never replies. */
export const stall: Behaviour = () => undefined
