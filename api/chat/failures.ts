/**
 * Why a provider did not serve a request: the kinds of failure with their consequences, and the meaning of providers'
 * errors as a table.
 */
import { retryAfterMs } from '../http/headers.ts'

type FailureRule = {
  /** A stable name, for clients and records; the SDKs know these words. */
  readonly errorType: string
  /** Follows the name of the provider. */
  readonly sentence: string
  /** Whether the provider rejects the request itself: 400 if every provider does. */
  readonly refusesRequest?: true
  /** Whether the failure shows nothing about the provider's health. */
  readonly harmless?: true
}

const unavailable = (sentence: string) => ({ errorType: 'provider_unavailable', sentence }) as const
const timeout = (sentence: string) => ({ errorType: 'timeout', sentence }) as const
const refusal = <Name extends string>(errorType: Name, sentence: string) =>
  ({ errorType, sentence: `refused the request: ${sentence}`, refusesRequest: true, harmless: true }) as const

const RULES = {
  connection: unavailable('could not be reached'),
  timeout: timeout('did not answer in time'),
  rateLimited: { errorType: 'rate_limit_exceeded', sentence: 'takes no more requests for now' },
  overloaded: { errorType: 'provider_overloaded', sentence: 'is overloaded' },
  failed: unavailable('failed'),
  // The provider rejects this service's key, credit or model name: never the caller's fault.
  operator: unavailable('did not accept the request of this service'),
  // Not a rate limit: waiting does not restore the quota.
  quota: unavailable('did not accept the request of this service'),
  invalidReply: unavailable('sent a reply that cannot be used'),
  cut: unavailable('ended its reply before it was whole'),
  malformed: refusal('invalid_request', 'it does not accept or support a part of it'),
  // Agents look for these words in the message, and shorten their context.
  tooLong: refusal(
    'context_length_exceeded',
    'the prompt is too long, it exceeds the maximum context length (context_length_exceeded)',
  ),
  tooLarge: refusal('payload_too_large', 'its body is too large (request_too_large)'),
  filtered: refusal('content_policy_violation', 'its content is not allowed'),
  outOfTime: { ...timeout('did not answer in the time that the request had left'), harmless: true },
  // Found once the reply has begun: no other provider is tried.
  notRead: { ...timeout('was cut off, since the caller did not read its reply'), harmless: true },
  // The client disconnected, or the service stops.
  cancelled: { errorType: 'server', sentence: 'was cancelled', harmless: true },
} as const satisfies Readonly<Record<string, FailureRule>>

type FailureKind = keyof typeof RULES
export type ErrorType = (typeof RULES)[FailureKind]['errorType']

type FailureFacts = {
  /** HTTP status of the provider, if there is one. */
  readonly status?: number | undefined
  /** The provider's Retry-After in seconds. */
  readonly retryAfterSeconds?: number | undefined
  /** The provider's short code for it, and the member of the request that it rejects. */
  readonly code?: string | undefined
  readonly param?: string | undefined
  /** What the provider said, for the log alone. */
  readonly detail?: string | undefined
  readonly cause?: unknown
}

/** One provider did not serve the request. The message holds no secret and no text of the provider. */
export class AttemptFailure extends Error {
  override readonly name = 'AttemptFailure'
  readonly kind: FailureKind
  readonly rule: FailureRule
  readonly errorType: ErrorType
  readonly facts: FailureFacts

  constructor(kind: FailureKind, facts: FailureFacts = {}) {
    super(RULES[kind].sentence, { cause: facts.cause })
    this.kind = kind
    this.rule = RULES[kind]
    this.errorType = RULES[kind].errorType
    this.facts = facts
  }
}

/** A row of the table: an error with one of these statuses, if any, and one of these words: alternatives, a line each. */
function meaning(kind: FailureKind, ...statuses: readonly number[]) {
  return ({ raw: [lines = ''] }: TemplateStringsArray) => {
    const pattern = lines.trim().replaceAll(/\n\s*/g, '|').replaceAll('#', '^:?')
    return { kind, statuses, words: new RegExp(pattern, 'im') }
  }
}

/**
 * In the order of matching; `#` marks the begin of a text or number. A status alone means little: some reject a bad key with
 * 400, and an empty account with 429.
 */
const MEANINGS = [
  // Go says "context deadline exceeded": no context that is too long.
  meaning('timeout')`deadline ?exceeded|#gatewaytimeout|model timed out`,
  // OpenAI, Groq and GitHub Models, with 429 or 413: waiting for the next minute does not help.
  meaning('tooLong')`request too large for|tokens must be reduced|reduce your message size`,
  meaning('quota')`#insufficient quota|#exceeded current quota`,
  meaning('rateLimited')`
    rate.?limit|too many (?:requests|tokens(?:, please wait| per| processed))|throttl|limit requests|resource exhausted|#1302\b
  `,
  meaning('quota', 429)`check your plan and billing`,
  // Limits of the output, of images, files, names and lists have the words of those for the input.
  meaning('malformed', 200, 400, 422)`
    (?<!(?:and|or|plus|\+) \W?)\b(?:max\w*|min|output|completion|thinking|budget) ?(?:(?:completion|output|new) )?(?:tokens?|budget)\b(?! of)[^.:\n]{0,25}(?:exceed|(?:less|more|greater) than)
    (?<!(?:and|or) )\b(?:images?|audio|video|files?|schema|name)\b(?! and)[^.:\n]{0,25}(?:exceed|too (?:long|big|large)|longer than)|array too long
  `,
  // The words of all providers for the input. A limit with another status is one of a key or a minute.
  meaning('tooLong', 200, 400, 404, 413, 422, 424, 500, 502, 503)`
    (?:prompt(?! cache)|inputs?|messages?|conversation|query|context|tokens|token (?:count|length))\b[^:\n]{0,60}(?:exceed|(?:[gt]er|less|more) than).{0,60}(?:context|tokens|limit|len|max|model)
    (?:prompt|inputs?|messages?|conversation|query|context)\b.{0,60}(?:(?<!string )too long|too large for (?:this |the )?model|too big)
    exceed\w* .{0,30}(?:context|max(?:imum)? (?:number of |\w+ )?tokens|(?:input|sequence|prompt|token) (?:length|limit))
    (?:context|conversation|prompt|input|tokens?)[ -]?(?:length|window|size|limit).{0,40}(?:exceed|overflow|reached)|context ?overflow
    maximum (?:context|prompt|input|model|sequence) length|context (?:length|window|size) (?:is|of only|is only) \d
    range of input length|input token count|max (?:prompt tokens|tokens of \d+) exceeded|inputs\W? tokens \+|#(?:3051|1261|1039)\b
    too many (?:(?:input |prompt )?tokens|total text bytes)|too large to process|(?:content|text)\W+string too long|reduce the length of
  `,
  meaning('filtered')`
    content ?(?:filter|management policy|policy)|\bflagged\b|moderation|content exists risk|prohibited content|nsfw
    new sensitive|sensitive ?(?:information|content|words?)|inappropriate content|high[- ]risk|guardrail check
    safety (?:system|filter|polic|reasons|check)|violat.{0,60}(?:polic|guideline)|usage (?:polic|guideline)
    responsibleaipolicy|prompt blocked|#(?:invalid prompt|data ?inspection|guardrail|(?:1301|1026|1027)\b)
  `,
  // The operator's credit, then the key and the account, then the name of the model.
  meaning('operator')`
    balance.{0,40}(?:too low|insufficient|not enough|negative|exhausted)|#(?:1113|1309|30001)\b|freetieronly
    (?:insufficient|not enough) (?:account )?(?:balance|credits?|funds)|billing (?:not active|error|disabled)
    (?:used all|out of|not enough|enough|need more|any|add) (?:available )?credits?\b|credit limit|included credits
    (?:billing|spending) (?:hard )?limit|payment (?:method|required)|(?:enable|set up|activate) billing
    \btop(?:ping)?[ -]up\b|\barrear|overdue|in good standing|budget.{0,10}exceeded
    (?:api|access|subscription|auth\w*)[ -]?(?:key|token).{0,40}(?:invalid|not valid|incorrect|expired|revoked|disabled|missing|not found)
    (?:invalid|incorrect|expired|revoked|wrong|unknown|missing|bad|no) (?:\w+ )?(?:api|access|auth\w*)[ -]?(?:key|token)
    authentication (?:fail|required|error)|unauthori[sz]ed|unauthenticated|#permission|location is not supported|unsupported country
    (?:organi[sz]ation|account|project|team|consumer|service) (?:has been |is |was )?(?:restricted|suspended|disabled|deactivated|blocked)
    access ?denied|(?:n't|not) have access to the model|#operation not allowed|unrecognizedclient|expiredtoken|must be verified|#1004\b
    \bmodels?\b.{0,120}(?:(?:does|do|did) ?(?:not|n't) exist|not exist|not found|not (?:currently )?available|unavailable|not loaded|no longer|decommissioned|deprecated|retired|shut down|disabled)
    (?:unknown|invalid|no such|unrecogni[sz]ed|unsupported|unavailable|unable to access|not a chat) (?:non-serverless )?model\b
    http request .{0,12}to (?:an )?https|not a valid model|no models? (?:is )?loaded|model identifier is invalid|on-demand throughput|no endpoints found for
    not supported by any provider|only supported in v1/|(?<!(?:for|with|by|of) \w+ )model (?:(?:is )?not supported|terms required)|not work with the specified model|supported api model names
    #(?:deploymentnotfound|modelnotopen|invalidendpointormodel|(?:1211|1500|20012|30003)\b)
  `,
  meaning('overloaded')`
    overloaded|at capacity|(?:capacity|queue) exceeded|loading model|model is (?:currently )?loading
    #(?:unavailable|modelnotready|serviceunavailable|insufficient system resource|1305\b)
  `,
  // With 400: the model wrote a tool call or JSON that does not parse (Groq), or died (LM Studio, vLLM, NVIDIA, Cloudflare).
  meaning('failed')`
    #(?:tool use failed|output parse failed|json validate failed|network error|abort|channel error|enginecore)
    failed to (?:load model|get response)|model (?:has crashed|unloaded|reloaded)|degraded function|out of memory
  `,
  // Anthropic, with 400: "You have reached your specified API usage limits"; Azure, with 403: "Out of call volume quota".
  meaning('quota', 200, 400, 402, 403)`
    (?:out of|exceed\w*|reached|used up).{0,40}\b(?:quota|usage limits?|allocation)\b
    \b(?:quota|usage limits?|daily \w+ limit)\b.{0,60}(?:reached|exceeded|exhausted|used up)
  `,
  // OpenRouter, with 404: "No endpoints found that support tool use"; llama.cpp, with 500: "requires --jinja".
  meaning('malformed', 200, 404, 405, 500, 501)`
    unsupported(?! operand)|(?:not|n't) (?:currently |yet )?(?:support|permitted|implemented|enabled)|found that (?:support|can)
    only support(?:s|ed)?\b|requires? --|--jinja|must alternate|not a multimodal|#2013\b
  `,
  // Without known words: RFC 9110, and 498 (Groq), 524 (Cloudflare), 529 (Anthropic).
  meaning('malformed', 400, 415, 422)``,
  meaning('timeout', 408, 504, 524)``,
  meaning('overloaded', 498, 503, 529)``,
  meaning('tooLarge', 413)``,
  meaning('filtered', 446, 451)``,
  meaning('rateLimited', 429)``,
]

function kindOf(status: number, json: string): FailureKind {
  // Each text and number on a line of its own.
  const lines = json.replaceAll(/(?:[_ ]|\\[nrt])+/g, ' ').replaceAll(/(?<!\\)"/g, '\n')
  const known = MEANINGS.find(
    ({ statuses, words }) => (statuses.length === 0 || statuses.includes(status)) && words.test(lines),
  )
  // Any other 4xx is the operator's.
  return known?.kind ?? (status < 400 ? 'invalidReply' : status < 500 ? 'operator' : 'failed')
}

/** Members that describe an error, alone, in a list, or inside one another. */
const DESCRIBING = (
  'code type status reason status_code statusCode error_type error_code __type headers X-RateLimit-Reset ' +
  'message Message msg detail error status_msg error_msg error_message raw title param retryDelay retry_after ' +
  'innererror base_resp metadata details errors retryAfter'
).split(' ')
const DESCRIPTION_CHARACTERS = 8000
const RETRY_SECONDS_AT_MOST = 3600

/**
 * The failure behind an error of a provider.
 * @param status HTTP status of the reply.
 * @param body its body as parsed JSON, otherwise as text.
 * @param headerMs the wait in milliseconds from the headers.
 */
export function failureOf(status: number, body: unknown, headerMs?: number): AttemptFailure {
  const described = typeof body === 'string' ? body.replaceAll(/<[^<>]*>/g, ' ') : body
  const json = JSON.stringify(described, DESCRIBING).slice(0, DESCRIPTION_CHARACTERS)
  const [, code] = /"\w*(?:code|status)":"?([45]\d\d)\b/i.exec(json) ?? []
  const meant = status < 300 ? Number(code ?? status) : status
  const waitMs = headerMs ?? waitIn(json)
  return new AttemptFailure(kindOf(meant, json), {
    status: meant < 300 ? undefined : meant,
    retryAfterSeconds: waitMs && Math.min(Math.ceil(waitMs / 1000), RETRY_SECONDS_AT_MOST),
    code: nameIn(json, 'code'),
    param: nameIn(json, 'param'),
    detail: json,
  })
}

/** The failure behind data of a successful reply. */
export const failureIn = (data: unknown): AttemptFailure => failureOf(200, data)

const KEY_CHARACTERS = 6
const LOGGED_CHARACTERS = 200
/** Keys of any provider: after a known prefix, partly starred, or a long run of letters and digits. */
const KEYS =
  /\b(?:bearer\s+\S+|(?:sk|pk|key|gsk|xai|hf|nvapi|AIza)[-_*]?[\w*.-]{6,}|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{24,})|\S{0,40}\*{3,}\S*/gi

/** A provider's message for the log: short, without the values of `headers` and without any other likely key. */
export function redacted(message: string, headers: Readonly<Record<string, string>>): string {
  const secrets = Object.values(headers)
    .flatMap((value) => [value, value.replace(/^\w+ +/, '')])
    .filter((value) => value.length >= KEY_CHARACTERS)
  const known = secrets.reduce((text, secret) => text.replaceAll(secret, '[key]'), message)
  return known.replaceAll(KEYS, '[key]').slice(0, LOGGED_CHARACTERS)
}

/** A short name that clients may see: keys have more digits, and messages have spaces. */
function nameIn(json: string, member: 'code' | 'param'): string | undefined {
  return new RegExp(`"${member}":"([a-z_](?!(?:[^"]*\\d){5})[\\w.[\\]-]{1,63})"`, 'i').exec(json)?.[1]
}

const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

/** The wait in milliseconds: a member (Gemini), the time of its end (OpenRouter), or words: "try again in 1m2.5s". */
function waitIn(json: string): number | undefined {
  const [, words = ''] =
    /(?:(?:again|retry|resets?|available) (?:in|after)|wait) ((?:[\d.]+ ?[hms][a-z]*\s?)+)/i.exec(json) ?? []
  const [, text = words] =
    /"(?:retry_?(?:delay|after)|x-ratelimit-reset)":"?([\d.]+(?:ms)?)/i.exec(json) ?? []
  if (/^[\d.]+$/.test(text)) return retryAfterMs(text)
  let sum = 0
  for (const [, number, unit = ''] of text.toLowerCase().matchAll(/([\d.]+) ?(ms|[hms])/g))
    sum += Number(number) * (UNITS[unit] ?? 0)
  return sum > 0 && Number.isFinite(sum) ? sum : undefined
}
