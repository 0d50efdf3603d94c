/**
 * The JSON of a directory's reply. Its Content-Type is ignored: directories send `application/scim+json`,
 * `application/json+scim`, `text/json` or none.
 */
import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { Response } from 'undici'
import { exceededBound } from '../untrusted/json-bounds.ts'
import { parseJson } from '../untrusted/json.ts'
import { SyncFailure } from './failures.ts'
import type { SyncLimits } from './limits.ts'

/** Types of web pages. Other types are not repeated in messages: they may be secret. */
const SHOWN_TYPE = /^(?:text|application)\/(?:html|plain|xhtml\+xml|xml|json|scim\+json)\b/i

export interface BodyOptions {
  /** The request's name in messages. */
  readonly what: string
  readonly limits: SyncLimits
  /** The token of the request. A reply that repeats it is rejected, so that no store or log gets it. */
  readonly secret: string
}

/**
 * Reads the body of a reply. The event loop gets its turn between the passes over a large one.
 * @throws {SyncFailure} if it is not JSON, repeats the token, or exceeds the limits.
 */
export async function readJsonBody(reply: Response, { what, limits, secret }: BodyOptions): Promise<unknown> {
  const bytes = await readBytes(reply, limits.responseBytes)
  if (bytes === undefined) throw tooLarge(`${what}: the reply has more than ${limits.responseBytes} bytes`)
  const type = reply.headers.get('content-type') ?? ''
  const text = decodeText(bytes, type, what)
  await endOfTurn()
  if (isRepeated(secret, text)) throw invalid(`${what}: the reply repeats the token`)
  const exceeded = exceededBound(text, { elements: limits.responseElements, depth: limits.responseDepth })
  if (exceeded !== undefined) throw tooLarge(`${what}: the reply exceeds the limit of ${exceeded}`)
  await endOfTurn()
  const json = parseJson(text)
  if (json !== undefined) return json
  throw invalid(
    `${what}: no JSON, but ${text.length} characters of ${SHOWN_TYPE.exec(type)?.[0] ?? 'another type'}`,
  )
}

/** The decoded body; undefined if it is longer than `most`. */
async function readBytes({ body }: Response, most: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.byteLength
    if (length > most) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function decodeText(bytes: Buffer, type: string, what: string): string {
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type) ?? []
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch (error) {
    const why = error instanceof RangeError ? 'is in an unknown charset' : 'is not valid in its charset'
    throw invalid(`${what}: the reply ${why}`)
  }
}

// A shorter token is no secret: it may occur in any text.
const SHORTEST_SECRET = 8

/** Whether a text has the token, in any JSON spelling: some writers escape HTML characters, such as the = of Base64. */
export function isRepeated(token: string, text: string): boolean {
  if (token.length < SHORTEST_SECRET) return false
  const spellings = token.split('').map((character) => {
    const digits = character.charCodeAt(0).toString(16).padStart(4, '0')
    const anyCase = digits.replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)
    return `(?:\\\\?${RegExp.escape(character)}|\\\\u${anyCase})`
  })
  return new RegExp(spellings.join('')).test(text)
}

function tooLarge(detail: string): SyncFailure {
  return new SyncFailure('directory_too_large', detail)
}

function invalid(detail: string): SyncFailure {
  return new SyncFailure('directory_invalid_response', detail)
}
