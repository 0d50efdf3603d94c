/** Streams of the service over a scripted provider, as a strict client reads them. */
import { expect } from 'vitest'
import { z } from 'zod'
import { MESSAGES, type ScriptedChat } from './chat.ts'
import type { Behaviour } from './upstream.ts'

const chunkSchema = z.looseObject({
  id: z.string().min(1),
  object: z.literal('chat.completion.chunk'),
  created: z.int(),
  model: z.string(),
  provider: z.string(),
  choices: z.array(
    z.looseObject({
      index: z.int(),
      delta: z.looseObject({ content: z.string().optional() }),
      finish_reason: z.string().nullable(),
    }),
  ),
  usage: z
    .strictObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() })
    .optional(),
})

interface StreamAsked {
  /** Further members of the request. */
  readonly more?: Readonly<Record<string, unknown>>
  /** Called with all data so far, after each new piece. */
  readonly onText?: (text: string) => void
}

/** The text of a reply, also of one that breaks off. */
export async function readText(response: Response, onText: (text: string) => void = () => undefined) {
  let text = ''
  try {
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part
      onText(text)
    }
    return { text, isBroken: false }
  } catch {
    return { text, isBroken: true }
  }
}

/** Streams a scripted reply; returns what a client reads: chunks, whether it was complete, and the usage record. */
export async function askForStream(
  { api, script, records }: ScriptedChat,
  behaviour: Behaviour,
  { more = {}, onText = () => undefined }: StreamAsked = {},
) {
  script(behaviour)
  const response = await api.post({ model: 'a/one', messages: MESSAGES, stream: true, ...more })
  expect(response.headers.get('Content-Type')).toBe('text/event-stream; charset=utf-8')
  const { text, isBroken } = await readText(response, onText)
  const data = text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length))
  const isWhole = data.at(-1) === '[DONE]'
  // A stream without [DONE] ends without the last HTTP chunk too.
  expect(isBroken).toBe(!isWhole)
  const all = data.filter((one) => one !== '[DONE]').map((one): unknown => JSON.parse(one))
  const chunks = all.map((one) => chunkSchema.parse(one))
  const [record] = records().slice(-1)
  return {
    text,
    isWhole,
    data: all,
    chunks,
    record,
    content: chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''),
    last: chunks.at(-1),
    deltas: chunks.map(({ choices }) => choices[0]?.delta),
  }
}
