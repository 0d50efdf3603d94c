/** Assembles a provider's reply as a client does, without a server: a whole reply, or a stream with the same content. */
import { z } from 'zod'
import { ChunkReader } from '../../../api/chat/protocol/chunks.ts'
import { readCompletion } from '../../../api/chat/protocol/completion.ts'

const ANSWERER = { model: 'a/one', provider: 'acme', fallbackId: 'gen-1', created: 1 }

const finishedSchema = z.looseObject({ finish_reason: z.string().nullable() })
const wholeSchema = z.looseObject({
  choices: z.array(finishedSchema.extend({ message: z.record(z.string(), z.unknown()) })).min(1),
})
const chunkSchema = z.looseObject({
  choices: z.array(finishedSchema.extend({ delta: z.record(z.string(), z.unknown()) })),
})
const partSchema = z.looseObject({
  index: z.int(),
  id: z.string().optional(),
  type: z.string().optional(),
  function: z.looseObject({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
})

export function readWhole(reply: unknown) {
  const { body, usage } = readCompletion(reply, ANSWERER)
  const { choices, ...top } = wholeSchema.parse(body)
  const [first] = choices
  if (first === undefined) throw new TypeError('The reply has no choice')
  const { message, ...choice } = first
  return { message, choice, top, usage }
}

/** The first choice of a stream of these chunks, as a client assembles it. */
export function readStream(chunks: readonly unknown[]) {
  const reader = new ChunkReader(ANSWERER)
  const data = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]']
  const read = data.map((one) => reader.read({ data: one })).filter((chunk) => chunk !== undefined)
  const all = [...read, reader.last()].map((chunk) => chunkSchema.parse(chunk))
  const deltas = all.map(({ choices }) => choices[0]?.delta ?? {})
  const last = chunkSchema.parse(reader.last())
  const { choices, ...top } = last
  const [first] = choices
  if (first === undefined) throw new TypeError('The last chunk has no choice')
  const { delta: _delta, ...choice } = first
  return { deltas, calls: callsIn(deltas), choice, top, usage: reader.usage, isWhole: reader.isWhole }
}

/** Assembles tool calls: ids, types and names may come once, arguments in pieces. */
function callsIn(deltas: readonly Readonly<Record<string, unknown>>[]) {
  const calls: { id: string; type: string; name: string; arguments: string; isNamedAtFirst: boolean }[] = []
  for (const part of deltas.flatMap((delta) => z.array(partSchema).parse(delta['tool_calls'] ?? []))) {
    const { id = '', type = '', function: { name = '', arguments: text = '' } = {} } = part
    const isNamedAtFirst = id !== '' && name !== ''
    const call = (calls[part.index] ??= { id: '', type: '', name: '', arguments: '', isNamedAtFirst })
    call.id += id
    call.type += type
    call.name += name
    call.arguments += text
  }
  return calls
}
