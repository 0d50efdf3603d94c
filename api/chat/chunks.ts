/**
 * The body of a provider's reply as chunks, whatever its form: server-sent events, one JSON value, a list of them, or
 * one a line. A whole reply is a stream with one chunk.
 */
import type { Readable } from 'node:stream'
import { createParser } from 'eventsource-parser'
import { isObject, parseJson } from '../untrusted/json.ts'
import { AttemptFailure } from './failures.ts'

/** What ends a stream. */
export const DONE = '[DONE]'

/** One value that a provider sent. */
export interface ProviderChunk {
  /** Parsed JSON, otherwise the text as it was sent; DONE at the end. */
  readonly value: unknown
  /** Whether the name of its event marks it as an error. */
  readonly isError: boolean
}

/** Maximum characters of a reply that is held as a whole. */
export const REPLY_CHARACTERS = 64 * 1024 * 1024

/** Maximum characters of one event: image models send a whole image in base64. */
const EVENT_CHARACTERS = 16 * 1024 * 1024

/** Such a body is not a stream of events, whatever its content type. */
const JSON_BEGINS = /^\s*[[{]/

/**
 * The chunks in `body`, grouped by read; an empty group for a keep-alive. The body stays open when reading stops.
 * @param eventsAtMost maximum characters of a stream of events.
 * @throws {AttemptFailure} if a limit is exceeded.
 */
export async function* readChunks(
  body: Readable,
  eventsAtMost = Infinity,
): AsyncGenerator<readonly ProviderChunk[], void> {
  const parser = createEventParser()
  const decoder = new TextDecoder()
  let characters = 0
  let json = ''
  let form: 'unknown' | 'events' | 'json' = 'unknown'
  for await (const part of body.iterator({ destroyOnReturn: false })) {
    const text = decoder.decode(part, { stream: true })
    if (form === 'unknown' && text.trim() !== '') form = JSON_BEGINS.test(text) ? 'json' : 'events'
    characters += text.length
    if (characters > (form === 'events' ? eventsAtMost : REPLY_CHARACTERS))
      throw new AttemptFailure('invalidReply')
    if (form === 'events') yield parser.read(text)
    else json += text
  }
  yield form === 'events' ? parser.end() : chunksOfJson(json)
}

function chunksOfJson(text: string): readonly ProviderChunk[] {
  const value = parseJson(text)
  if (value === undefined) return chunksOfLines(text) ?? [chunkOf(text)]
  const values: readonly unknown[] = Array.isArray(value) && value.length > 0 ? value : [value]
  return [...values, DONE].map((one) => ({ value: one, isError: false }))
}

/** The chunks of a text with one value a line and no blank lines between; undefined for any other form. */
function chunksOfLines(text: string): readonly ProviderChunk[] | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const chunks = lines.map((line) => chunkOf(line))
  const areValues = chunks.every(({ value }) => value === DONE || isObject(value))
  return areValues && chunks.length > 0 ? chunks : undefined
}

function chunkOf(data: string, isError = false): ProviderChunk {
  const text = data.trim()
  return { value: text === DONE ? DONE : (parseJson(text) ?? text), isError }
}

/** A parser of server-sent events that returns the chunks of its input. */
function createEventParser() {
  let chunks: ProviderChunk[] = []
  let isTooLarge = false
  const parser = createParser({
    maxBufferSize: EVENT_CHARACTERS,
    onEvent({ event, data }) {
      const isError = event === 'error'
      const one = chunkOf(data, isError)
      // Some servers send an empty event as a keep-alive.
      if (one.value === '' && !isError) return
      const isLines = typeof one.value === 'string' && data.includes('\n')
      chunks.push(...((isLines && chunksOfLines(data)) || [one]))
    },
    onError({ type, field, value = '' }) {
      if (type === 'max-buffer-size-exceeded') isTooLarge = true
      // llama.cpp marks an error by a field of its own.
      else if (field === 'error') chunks.push(chunkOf(value, true))
    },
  })
  function read(text: string): readonly ProviderChunk[] {
    parser.feed(text)
    if (isTooLarge) throw new AttemptFailure('invalidReply')
    return chunks.splice(0)
  }
  // Some servers omit the blank line after the last event.
  return { read, end: () => read('\n\n') }
}
