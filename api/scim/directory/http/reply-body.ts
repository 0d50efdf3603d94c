/**
 * The JSON of a directory's reply. Its Content-Type is ignored: directories send `application/scim+json`,
 * `application/json+scim`, `text/json` or none.
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

/** Types of web pages. Other types are not repeated in messages: they may be secret. */
const SHOWN_TYPE = /^(?:text|application)\/(?:html|plain|xhtml\+xml|xml|json|scim\+json)\b/i

export interface BodyOptions {
  /** The request's name in messages. */
  readonly what: string
  readonly limits: SyncLimits
  /** The token of the request. A reply that repeats it is rejected, so that no store or log gets it. */
  readonly token: string
}

/**
 * Reads the body of a reply.
 * @throws {SyncFailure} if it is not JSON, repeats the token, or exceeds the limits.
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

// The client accepts no coding, but some proxies compress anyway.
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
  if (decode === undefined) throw invalid(`${what}: the reply has an unknown content coding`)
  try {
    return await decode(bytes, { maxOutputLength: limits.responseBytes })
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(`${what}: the reply has too many bytes`)
    throw invalid(`${what}: the reply is not valid ${coding}`)
  }
}

// RFC 9110, 8.4.1.2 defines the zlib format, but some servers send bare deflate.
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
    const why = error instanceof RangeError ? 'is in an unknown charset' : 'is not valid in its charset'
    throw invalid(`${what}: the reply ${why}`)
  }
}

// A shorter token is no secret: it may occur in any text.
const SHORTEST_SECRET = 8

// In all JSON spellings: some writers escape HTML characters, including the = of Base64.
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
