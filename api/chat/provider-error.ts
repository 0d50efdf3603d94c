/** Classifies the errors of providers, in any form. */
import { isObject, objectsIn, type JsonObject } from '../untrusted/json.ts'
import { AttemptFailure, type FailureKind } from './failure.ts'
import { FAILURES } from './failures.ts'

/** An error as the provider describes it. */
interface ProviderError {
  /** The HTTP status, or the status inside a reply of 200. */
  readonly status: number
  /** Codes, types and reasons, in lower case. */
  readonly words: readonly string[]
  readonly message: string
}

const WORD_KEYS = 'code type status reason status_code statusCode error_type error_code __type'.split(' ')
const MESSAGE_KEYS = 'message Message msg detail error status_msg error_msg error_message raw title'.split(
  ' ',
)
const MESSAGE_CHARACTERS = 2000
const WAIT =
  /(?:(?:try again|retry) (?:in|after)|please wait) (?:([\d.hms]*\d[\d.]*m?[hms])\b|(\d+(?:\.\d+)?) ?(seconds?|minutes?|hours?))/i
const RETRY_SECONDS_AT_MOST = 3600

/** Members that mark data without choices and usage as an error. */
const ERROR_KEYS =
  'message Message msg detail code errors error_code error_msg error_message statusCode'.split(' ')

/**
 * The failure behind an error of a provider.
 * @param status HTTP status of the reply.
 * @param body its body as parsed JSON, otherwise as text.
 * @param retryAfterMs the wait in milliseconds from the headers.
 */
export function failureOf(status: number, body: unknown, retryAfterMs?: number): AttemptFailure {
  const parts = partsOf(body)
  const words = parts.flatMap(wordsIn)
  const message = messageIn(body, parts)
  const meant = status < 300 ? (words.map(Number).find(isErrorStatus) ?? status) : status
  const waitMs = retryAfterMs ?? parts.map(statedWait).find(isKnown)
  return new AttemptFailure(kindOf({ status: meant, words, message }), {
    status: meant,
    retryAfterSeconds: secondsOf(waitMs ?? waitIn(message)),
    code: words.find(isName) ?? words[0],
    param: parts.map(({ param }) => param).find(isName),
    detail: message === '' ? undefined : message,
  })
}

/** Whether this is a short name that clients may see: keys have more digits, and messages have spaces. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z_](?!(?:.*\d){5})[\w.[\]-]{1,63}$/i.test(value)
}

/** Whether data of a stream, or a whole reply, is an error instead of an answer. */
export function isError(value: JsonObject): boolean {
  const { error, base_resp: minimax, choices } = value
  if (isErrorValue(error)) return true
  if (isObject(minimax) && isErrorValue(minimax['status_code'])) return true
  if (objectsIn(choices).length > 0 || isObject(value['usage'])) return false
  const isNamed = value['type'] === 'error' || value['object'] === 'error' || value['success'] === false
  return isNamed || ERROR_KEYS.some((key) => isErrorValue(value[key]))
}

function kindOf({ status, words, message }: ProviderError): FailureKind {
  const row = FAILURES.find(
    (one) =>
      one.status?.includes(status) !== false &&
      one.word?.some((word) => words.includes(word)) !== false &&
      one.message?.test(message) !== false,
  )
  if (row !== undefined) return row.kind
  if (status < 400) return 'invalidReply'
  return status < 500 ? 'operator' : 'failed'
}

/** The objects that describe an error: it stands alone, in a list, or under `error`, with details below it. */
function partsOf(body: unknown): readonly JsonObject[] {
  const outer = Array.isArray(body) ? objectsIn(body)[0] : body
  if (!isObject(outer)) return []
  const inner = [outer['error'], outer['detail'], outer['message']].find(isObject)
  const all = inner === undefined ? [outer] : [inner, outer]
  return all.flatMap((part) => [
    part,
    ...[part['innererror'], part['base_resp'], part['metadata']].filter(isObject),
    ...objectsIn(part['details']),
    ...objectsIn(part['detail']),
    ...objectsIn(part['errors']),
  ])
}

function wordsIn(part: JsonObject): string[] {
  return WORD_KEYS.map((key) => part[key])
    .filter(
      (value) => typeof value === 'number' || (typeof value === 'string' && /^[\w.:#-]{1,80}$/.test(value)),
    )
    .map((value) => String(value).toLowerCase())
}

function messageIn(body: unknown, parts: readonly JsonObject[]): string {
  const texts = parts.flatMap((part) => MESSAGE_KEYS.map((key) => part[key]))
  const sentences = typeof body === 'string' ? [body.replaceAll(/<[^>]*>/g, ' ')] : texts
  const text = sentences.filter((one) => typeof one === 'string').join(' ')
  return text.slice(0, MESSAGE_CHARACTERS).replaceAll(/\s+/g, ' ').trim()
}

/** Some providers send every error member with every reply, empty or 0 without an error. */
function isErrorValue(value: unknown): boolean {
  return isKnown(value) && value !== '' && value !== false && Number(value) !== 0
}

function isKnown<Value>(value: Value): value is NonNullable<Value> {
  return value !== undefined && value !== null
}

function isErrorStatus(number: number): boolean {
  return Number.isInteger(number) && number >= 400 && number <= 599
}

/** Gemini sends a duration, others a number of seconds. */
function statedWait({ retryDelay, retry_after: seconds }: JsonObject): number | undefined {
  return milliseconds(retryDelay) ?? milliseconds(`${Number(seconds ?? 0)}s`)
}

/**
 * OpenAI, Groq, Gemini, Azure, Moonshot and GitHub use words: "Please try again in 1m2.5s", "retry after 20 seconds",
 * "wait 40000 seconds".
 */
function waitIn(message: string): number | undefined {
  const [, short, number, unit] = WAIT.exec(message) ?? []
  return milliseconds(short) ?? milliseconds(`${number}${unit?.[0]?.toLowerCase()}`)
}

/** A duration such as `37s`, `1m2.5s` or `450ms`, in milliseconds. */
function milliseconds(duration: unknown): number | undefined {
  if (typeof duration !== 'string') return undefined
  const parts = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?\.?$/.exec(duration)
  if (parts === null || duration === '') return undefined
  const [hours = 0, minutes = 0, seconds = 0, rest = 0] = parts.slice(1).map((part) => Number(part ?? 0))
  const sum = (hours * 3600 + minutes * 60 + seconds) * 1000 + rest
  return Number.isFinite(sum) && sum > 0 ? sum : undefined
}

function secondsOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.min(Math.ceil(ms / 1000), RETRY_SECONDS_AT_MOST)
}
