/** The events of a provider's reply in any form: server-sent events, JSON, or JSON lines. */
import type { Readable } from 'node:stream'
import { createParser, type EventSourceMessage, type ParseError } from 'eventsource-parser'
import { isObject, objectsIn, parseJson, type JsonObject } from '../untrusted/json.ts'
import { AttemptFailure } from './failure.ts'
import { REPLY_BYTES } from './provider.ts'

/** The last event of a stream. */
const DONE = '[DONE]'

/** Some providers quote it. */
export function isDone(data: string): boolean {
  return /^\s*"?\[DONE\]"?\s*$/i.test(data)
}

/** One event. Its name matters only for errors. */
export type ProviderEvent = Pick<EventSourceMessage, 'event' | 'data'>

/** Whether the name of an event marks its data as an error. */
export function namesError(event: string | undefined): boolean {
  return event !== undefined && /error|exception/i.test(event)
}

/** Maximum characters of one event: image models send a whole image in base64. */
const EVENT_CHARACTERS = 16 * 1024 * 1024

/** Such a body is not a stream of events, whatever its content type. */
const JSON_BEGINS = /^\s*[[{]/

/**
 * The events in `body`, grouped by read; an empty group for a comment, which is a keep-alive. The body stays open when
 * reading stops.
 */
export async function* readEvents(body: Readable): AsyncGenerator<readonly ProviderEvent[], void> {
  const parser = createEventParser()
  const decoder = new TextDecoder()
  let buffered = ''
  let form: 'unknown' | 'events' | 'json' = 'unknown'
  for await (const part of body.iterator({ destroyOnReturn: false })) {
    const text = decoder.decode(part, { stream: true })
    if (form === 'unknown' && text.trim() !== '') form = JSON_BEGINS.test(text) ? 'json' : 'events'
    if (form === 'events') yield parser.read(text)
    else buffered += text
    if (buffered.length > REPLY_BYTES) throw new AttemptFailure('invalidReply', { code: 'reply_too_large' })
  }
  yield form === 'json' ? eventsOfJson(buffered) : parser.end()
}

/** The events of a whole body; empty if its form is unknown. */
export function eventsOfText(text: string): readonly ProviderEvent[] {
  if (JSON_BEGINS.test(text)) return eventsOfJson(text)
  const parser = createEventParser()
  return [...parser.read(text), ...parser.end()]
}

function eventsOfJson(text: string): readonly ProviderEvent[] {
  const value = parseJson(text)
  const values: unknown[] = Array.isArray(value) && value.length > 0 ? value : [value]
  if (value !== undefined) return [...values.flatMap(eventsOf), { data: DONE }]
  return linesOf(text) ?? [{ data: text }]
}

/** A whole completion as an event, for providers that do not stream. */
function eventsOf(value: unknown): readonly ProviderEvent[] {
  if (!isObject(value) || !Array.isArray(value['choices'])) return [{ data: JSON.stringify(value) }]
  const { choices, ...rest } = value
  const parts = objectsIn(choices).map(({ message, ...choice }) => ({
    ...choice,
    delta: message === undefined ? choice['delta'] : withIndexes(message),
  }))
  return [{ data: JSON.stringify({ ...rest, choices: parts }) }]
}

/** A whole message with its tool calls in the form of a stream. */
function withIndexes(message: unknown): unknown {
  if (!isObject(message) || !Array.isArray(message['tool_calls'])) return message
  const calls = objectsIn(message['tool_calls']).map((call: JsonObject, index) => ({ ...call, index }))
  return { ...message, tool_calls: calls }
}

/** The events of a body with one event a line and no blank lines between; undefined for any other form. */
function linesOf(text: string): readonly ProviderEvent[] | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const areEvents = lines.every((line) => isDone(line) || isObject(parseJson(line)))
  return areEvents ? lines.map((data) => ({ data })) : undefined
}

/** A parser that returns the events of its input. */
function createEventParser() {
  let events: ProviderEvent[] = []
  let tooLarge = false
  const parser = createParser({
    maxBufferSize: EVENT_CHARACTERS,
    onEvent: (event) => {
      const lines = event.data.includes('\n') && parseJson(event.data) === undefined && linesOf(event.data)
      events.push(...(lines || [event]))
    },
    onError: (error: ParseError) => {
      if (error.type === 'max-buffer-size-exceeded') tooLarge = true
      // llama.cpp marks an error by a field of its own.
      else if (error.field === 'error') events.push({ event: 'error', data: error.value ?? '' })
    },
  })
  function read(text: string): readonly ProviderEvent[] {
    parser.feed(text)
    if (tooLarge) throw new AttemptFailure('invalidReply', { code: 'event_too_large' })
    const taken = events
    events = []
    return taken
  }
  // Some servers omit the blank line after the last event.
  return { read, end: () => read('\n\n') }
}
