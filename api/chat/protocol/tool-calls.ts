/** Repairs of tool calls, so that the calls of a stream stay apart whatever a provider makes of their index. */
import { randomUUID } from 'node:crypto'
import { isObject, objectsIn, parseJson, withoutNulls, type JsonObject } from '../../untrusted/json.ts'

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
  isNamed: boolean
  /** Its arguments so far. */
  text: string
}

/**
 * For one choice of one stream. Providers give every call the index 0, leave the index out, or repeat the id in
 * every part: an id that is new begins a call, whatever its index; a part without an index belongs to the last.
 * Where they give no id either, a name begins a call beside another one, or after one whose arguments are whole.
 */
export function createToolCallRepair(): ToolCallRepair {
  const bySentIndex = new Map<number, OpenCall>()
  let last: OpenCall | undefined
  let calls = 0

  return (parts) =>
    objectsIn(parts).map((part, position) => {
      const sentIndex = typeof part['index'] === 'number' ? part['index'] : undefined
      const open = sentIndex === undefined ? last : bySentIndex.get(sentIndex)
      const isBeside = sentIndex === undefined && position > 0
      const goesOn = open !== undefined && belongsTo(part, open, isBeside)
      const call = goesOn ? open : { index: calls++, id: idOf(part), isNamed: false, text: '' }
      last = call
      if (sentIndex !== undefined) bySentIndex.set(sentIndex, call)
      const repaired = withFunctionText(part)
      note(call, repaired['function'])
      return goesOn ? laterPart(repaired, call.index) : firstPart(repaired, call)
    })
}

/** Whether a part goes on with a call; `isBeside`: it stands in one list with a part of it, and neither has an index. */
function belongsTo(part: JsonObject, open: OpenCall, isBeside: boolean): boolean {
  const id = idOf(part)
  if (id !== undefined) return id === open.id
  if (!open.isNamed || !hasName(part['function'])) return true
  return !isBeside && parseJson(open.text) === undefined
}

function note(call: OpenCall, inner: unknown): void {
  call.isNamed ||= hasName(inner)
  if (isObject(inner) && typeof inner['arguments'] === 'string') call.text += inner['arguments']
}

function hasName(inner: unknown): boolean {
  return isObject(inner) && typeof inner['name'] === 'string' && inner['name'] !== ''
}

function firstPart(part: JsonObject, { index, id }: OpenCall): JsonObject {
  return { type: 'function', ...part, index, id: id ?? makeId() }
}

/** A call has one id: what repeats it is left out, since clients put the parts together. */
function laterPart(part: JsonObject, index: number): JsonObject {
  const { id: _id, type: _type, ...rest } = part
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
