/** The events of a provider's reply, whatever form it has: server-sent events, JSON, or a line of JSON each. */
import type { Readable } from 'node:stream'
import { createParser, type EventSourceMessage, type ParseError } from 'eventsource-parser'
import { isObject, objectsIn, parseJson, type JsonObject } from '../../untrusted/json.ts'
import { AttemptFailure } from '../routing/failure.ts'
import { REPLY_BYTES } from './reply-body.ts'

/** What follows the last event of a stream. */
const DONE = '[DONE]'

/** Whether data says so: some put it between quotes. */
export function isDone(data: string): boolean {
  return /^\s*"?\[DONE\]"?\s*$/i.test(data)
}

/** One event. Its name says something only where it names an error. */
export type ProviderEvent = Pick<EventSourceMessage, 'event' | 'data'>

/** Whether the name of an event says that its data are an error. */
export function namesError(event: string | undefined): boolean {
  return event !== undefined && /error|exception/i.test(event)
}

/** Characters that one event of a provider may have: models that make images send a whole one in base64. */
const EVENT_CHARACTERS = 16 * 1024 * 1024

/** How a body begins that is no stream of events, whatever its type says. */
const JSON_BEGINS = /^\s*[[{]/

/**
 * The events in `body`, those of one read together: none for a comment, which is a sign of life. The body is left as
 * it is when reading stops.
 */
export async function* readEvents(body: Readable): AsyncGenerator<readonly ProviderEvent[], void> {
  const parser = createEventParser()
  const decoder = new TextDecoder()
  let kept = ''
  let form: 'unknown' | 'events' | 'json' = 'unknown'
  for await (const part of body.iterator({ destroyOnReturn: false })) {
    const text = decoder.decode(part, { stream: true })
    if (form === 'unknown' && text.trim() !== '') form = JSON_BEGINS.test(text) ? 'json' : 'events'
    if (form === 'events') yield parser.read(text)
    else kept += text
    if (kept.length > REPLY_BYTES) throw new AttemptFailure('invalidReply', { code: 'reply_too_large' })
  }
  yield form === 'json' ? eventsOfJson(kept) : parser.end()
}

/** The events of a whole body; none where it is of no form that is known. */
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

/** A whole completion as the event that says the same: for providers that do not stream. */
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

/** Events of which each has a line of its own, without the blank lines between; undefined where they are none. */
function linesOf(text: string): readonly ProviderEvent[] | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const areEvents = lines.every((line) => isDone(line) || isObject(parseJson(line)))
  return areEvents ? lines.map((data) => ({ data })) : undefined
}

/** A parser that gives the events of what it reads. */
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
      // llama.cpp tells an error by a field of its own.
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
  // Some servers end without the blank line that ends an event.
  return { read, end: () => read('\n\n') }
}
