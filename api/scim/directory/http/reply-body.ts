/**
 * The JSON of a directory's reply. The body decides, not its Content-Type: directories say `application/scim+json`,
 * `application/json+scim`, `text/json` or nothing.
 */
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib'
import type { Dispatcher } from 'undici'
import { codeOf } from '../../../process/system-errors.ts'
import { exceededBound } from '../../../untrusted/json-bounds.ts'
import { parseJson } from '../../../untrusted/json.ts'
import { SyncFailure } from '../../failures.ts'
import type { SyncLimits } from '../limits.ts'

type Decode = (bytes: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>

const zlibInflate: Decode = promisify(inflate)
const rawInflate: Decode = promisify(inflateRaw)

const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: inflateEither,
  br: promisify(brotliDecompress),
}

/** Some types that servers give to pages for people. Any other is not repeated in a message: it may be a secret. */
const SHOWN_TYPE = /^(?:text|application)\/(?:html|plain|xhtml\+xml|xml|json|scim\+json)\b/i

export interface BodyOptions {
  /** What the request is called in messages. */
  readonly what: string
  readonly limits: SyncLimits
  /** The token of the request. A reply that repeats it is refused, so that it gets into no store and no log. */
  readonly token: string
}

/**
 * Reads the body of a reply.
 * @throws {SyncFailure} when it is no JSON, repeats the token, or is larger than the limits.
 */
export async function readJsonBody(
  { headers, body }: Dispatcher.ResponseData,
  options: BodyOptions,
): Promise<unknown> {
  const { what, limits, token } = options
  const bytes = await decodeContent(Buffer.from(await body.arrayBuffer()), headers, options)
  const text = decodeText(bytes, String(headers['content-type'] ?? ''), what)
  if (isRepeated(token, text)) throw invalid(`${what}: the reply repeats the token`)
  const exceeded = exceededBound(text, { elements: limits.responseElements, depth: limits.responseDepth })
  if (exceeded !== undefined) throw tooLarge(`${what}: the reply exceeds the limit of ${exceeded}`)
  const json = parseJson(text)
  if (json !== undefined) return json
  const type = SHOWN_TYPE.exec(String(headers['content-type']))?.[0] ?? 'another type'
  throw invalid(`${what}: no JSON, but ${text.length} characters of ${type}`)
}

// The client accepts no coding, and some proxies compress what they pass on all the same.
async function decodeContent(
  bytes: Buffer,
  headers: Dispatcher.ResponseData['headers'],
  { what, limits }: BodyOptions,
): Promise<Buffer> {
  const coding = String(headers['content-encoding'] ?? 'identity')
    .trim()
    .toLowerCase()
  if (coding === 'identity' || coding === '') return bytes
  const decode = Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined
  if (decode === undefined) throw invalid(`${what}: the reply has a content coding that is not known`)
  try {
    return await decode(bytes, { maxOutputLength: limits.responseBytes })
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(`${what}: the reply has too many bytes`)
    throw invalid(`${what}: the reply is not valid ${coding}`)
  }
}

// RFC 9110, 8.4.1.2 means the zlib format, and some servers send the bare stream.
async function inflateEither(...[bytes, options]: Parameters<Decode>): Promise<Buffer> {
  try {
    return await zlibInflate(bytes, options)
  } catch (error) {
    if (codeOf(error) !== 'Z_DATA_ERROR') throw error
    return await rawInflate(bytes, options)
  }
}

function decodeText(bytes: Buffer, type: string, what: string): string {
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type) ?? []
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch (error) {
    const why =
      error instanceof RangeError ? 'is in a charset that is not known' : 'is not valid in its charset'
    throw invalid(`${what}: the reply ${why}`)
  }
}

// What is shorter than this is no secret, and may stand in any text.
const SHORTEST_SECRET = 8

// In all spellings that JSON has for it: some writers escape what HTML has a meaning for, the = of Base64 included.
function isRepeated(token: string, text: string): boolean {
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
