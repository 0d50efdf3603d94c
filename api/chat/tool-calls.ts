/** Repairs of tool calls, so that the calls of a stream stay apart whatever a provider makes of their index. */
import { randomUUID } from 'node:crypto'
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../json.ts'

/** The tool calls of a whole message, each with id, type and arguments as text. */
export function repairToolCalls(calls: unknown): JsonObject[] {
  return objectsIn(calls).map((call) => ({
    type: 'function',
    ...withFunctionText(call),
    id: idOf(call) ?? makeId(),
  }))
}

/** Gives each part of a streamed tool call the index of its call, counted from 0 without gaps. */
export type ToolCallRepair = (parts: unknown) => JsonObject[]

interface OpenCall {
  readonly index: number
  /** Undefined as long as the provider gave none. */
  readonly id: string | undefined
}

/**
 * For one choice of one stream. Providers give every call the index 0, leave the index out, or repeat the id in
 * every part: an id that is new begins a call, whatever its index; a part without an index belongs to the last.
 */
export function createToolCallRepair(): ToolCallRepair {
  const bySentIndex = new Map<number, OpenCall>()
  let last: OpenCall | undefined
  let calls = 0

  return (parts) =>
    objectsIn(parts).map((part) => {
      const id = idOf(part)
      const sentIndex = typeof part['index'] === 'number' ? part['index'] : undefined
      const open = sentIndex === undefined ? last : bySentIndex.get(sentIndex)
      const goesOn = open !== undefined && (id === undefined || id === open.id)
      const call = goesOn ? open : { index: calls++, id }
      last = call
      if (sentIndex !== undefined) bySentIndex.set(sentIndex, call)
      return goesOn ? laterPart(part, call.index) : firstPart(part, call)
    })
}

function firstPart(part: JsonObject, { index, id }: OpenCall): JsonObject {
  return { type: 'function', ...withFunctionText(part), index, id: id ?? makeId() }
}

/** A call has one id: what repeats it is left out, since clients put the parts together. */
function laterPart(part: JsonObject, index: number): JsonObject {
  const { id: _id, type: _type, ...rest } = withFunctionText(part)
  return { ...rest, index }
}

function idOf(call: JsonObject): string | undefined {
  return typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : undefined
}

function makeId(): string {
  return `call_${randomUUID().replaceAll('-', '')}`
}

/** Without nulls; arguments are text, byte for byte as the model wrote them: some servers send what they parsed. */
function withFunctionText(call: JsonObject): Record<string, unknown> {
  const kept = withoutNulls(call)
  if (!isObject(kept['function'])) return kept
  const inner = withoutNulls(kept['function'])
  if (inner['arguments'] !== undefined && typeof inner['arguments'] !== 'string') {
    inner['arguments'] = JSON.stringify(inner['arguments'])
  }
  return { ...kept, function: inner }
}
