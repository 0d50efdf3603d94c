/**
 * The meaning of providers' errors, as a table: the first matching row gives the kind. A status alone means little: one
 * provider rejects a bad key with 400, another an empty account with 429.
 */
import type { FailureKind } from './failure.ts'

/** A row matches if all its conditions do. */
interface FailureRow {
  readonly kind: FailureKind
  /** One of these HTTP statuses. */
  readonly status?: readonly number[]
  /** One of these words as code, type, status or reason of the error, in lower case. */
  readonly word?: readonly string[]
  /** The provider's message. */
  readonly message?: RegExp
}

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

/** Any of these expressions, in upper or lower case. */
const anyOf = (...patterns: readonly string[]): RegExp => new RegExp(patterns.join('|'), 'i')

// OpenAI, DeepSeek, Novita, OpenRouter, LiteLLM, Anthropic, Google, Alibaba, Volcengine, Zhipu, SiliconFlow.
const CREDIT_WORDS = words(`
  billing_hard_limit_reached billing_not_active insufficient_balance insufficient_credits not_enough_balance
  budget_exceeded billing_error billing_disabled arrearage accountoverdueerror allocationquota.freetieronly 1113 30001
`)

// Anthropic: "Your credit balance is too low"; xAI: "used all available credits or reached its monthly spending
// limit"; Alibaba: "make sure your account is in good standing"; Gemini: "enable billing"; DeepInfra: "please top up".
const CREDIT_MESSAGE = anyOf(
  'balance.{0,40}(?:too low|insufficient|not enough|negative|exhausted)',
  '(?:insufficient|not enough)[ _]*(?:account )?(?:balance|credits?|funds)',
  '(?:used all|out of|not enough|enough|need more|any|add) (?:available )?credits?\\b|credit limit',
  '(?:billing|spending) (?:hard )?limit|payment (?:method|required)|(?:enable|set up|activate) billing',
  '\\btop(?:ping)?[ -]up\\b|\\barrears?\\b|\\boverdue\\b|in good standing',
  'exceeded your (?:monthly )?included credits',
)

// OpenAI, llama.cpp, GitHub Models, LiteLLM, Mistral, Zhipu.
const LENGTH_WORDS = words(`
  context_length_exceeded exceed_context_size_error string_above_max_length tokens_limit_reached
  contextwindowexceedederror context_window_exceeded 3051 1261
`)

// OpenAI and vLLM: "maximum context length is 8192 tokens"; Anthropic: "prompt is too long: 210000 tokens > 200000
// maximum"; llama.cpp: "exceeds the available context size"; Gemini: "input token count (…) exceeds the maximum number
// of tokens allowed"; Bedrock: "Input is too long for requested model"; TGI: "`inputs` must have less than 4096 tokens";
// SGLang: "is longer than the model's context length"; Alibaba: "Range of input length should be"; LM Studio: "context
// length of only 4096 tokens"; Cerebras: "Current length is 9000 while limit is"; watsonx: "cannot exceed the total
// tokens limit"; OpenAI and Groq, with 429: "Request too large for": waiting for the next minute does not help.
const LENGTH_MESSAGE = anyOf(
  'maximum (?:context|prompt|input|model|sequence) length|context length of only',
  'context[ _-]?(?:length|window|size|limit).{0,40}(?:exceed|overflow|too small)',
  'exceed.{0,60}(?:context|maximum number of tokens|tokens? limit|(?:input|sequence|model|prompt) (?:length|limit))',
  'exceeds? (?:the )?max(?:imum)? (?:length|\\w* ?tokens)|exceed max message tokens',
  'too big compared to KV|too large to process|too many (?:input |prompt )?tokens',
  '(?:prompt|inputs?|messages?|conversation|query).{0,60}(?:too long|too many tokens|too large for model)',
  '(?:longer|greater) than the (?:model|maximum|context)|range of input length|current length is \\d+ while limit',
  'must have less than \\d+ tokens|max_new_tokens.{0,10}must be <=|less than max_seq_len',
  '(?:reduce|shorten) (?:the length of |your )(?:the |your )?(?:messages?|prompt|input)',
)
const LARGER_THAN_A_MINUTE = anyOf(
  'request too large for',
  'tokens must be reduced',
  'reduce your message size',
)

// OpenAI, Gemini, Cerebras, Anthropic, Moonshot, Google, Groq, Bedrock.
const KEY_WORDS = words(`
  invalid_api_key api_key_invalid wrong_api_key authentication_error invalid_authentication_error unauthenticated
  permission_error permission_denied service_disabled consumer_suspended account_deactivated organization_restricted
  unsupported_country_region_territory accessdeniedexception unrecognizedclientexception expiredtokenexception
`)

// Gemini: "API key not valid", "User location is not supported", both with 400; xAI: "Incorrect API key provided",
// with 400; DeepSeek: "Authentication Fails".
const KEY_MESSAGE = anyOf(
  '(?:api|access|subscription|auth\\w*)[ _-]?(?:key|token).{0,40}(?:invalid|not valid|incorrect|expired|revoked|disabled|missing|not found)',
  '(?:invalid|incorrect|expired|revoked|wrong|unknown|missing|bad|no) (?:\\w+ )?(?:api|access|auth\\w*)[ _-]?(?:key|token)',
  'authentication (?:fail|required|error)|unauthori[sz]ed|location is not supported',
  '(?:organi[sz]ation|account|project|team) (?:has been|is|was) (?:restricted|suspended|disabled|deactivated|blocked)',
)

// OpenAI, Hugging Face, Together, Groq, GitHub Models, Mistral, Azure, Volcengine, Zhipu, SiliconFlow.
const MODEL_WORDS = words(`
  model_not_found model_not_available model_not_supported model_decommissioned model_deprecated model_terms_required
  unknown_model unavailable_model invalid_model deploymentnotfound modelnotopen invalidendpointormodel.notfound
  1211 1500 20012 30003
`)

// DeepSeek: "Model Not Exist", with 400; OpenRouter: "is not a valid model ID", "No endpoints found for"; Bedrock: "The
// provided model identifier is invalid"; LM Studio: "No models loaded"; Gemini: "models/… is not found for API version".
const MODEL_MESSAGE = anyOf(
  "\\bmodels?\\b.{0,120}(?:(?:does|do|did) ?(?:not|n't) exist|not exist|not found|not (?:currently )?available|unavailable|not loaded|no longer|decommissioned|deprecated|retired|shut down|disabled)",
  '(?:unknown|invalid|no such|unrecogni[sz]ed|unsupported|unable to access) (?:non-serverless )?model\\b',
  'not a valid model|no models? (?:is )?loaded|model identifier is invalid|on-demand throughput',
  'no endpoints found (?:for|matching)|not supported by any provider',
)

// OpenAI, Azure, Moonshot, Alibaba, Volcengine, Gemini, Bedrock, Zhipu.
const CONTENT_WORDS = words(`
  content_filter responsibleaipolicyviolation content_policy_violation moderation_blocked invalid_prompt
  data_inspection_failed datainspectionfailed sensitivecontentdetected prohibited_content guardrail_intervened 1301
`)

// Azure: "content management policy"; OpenRouter: "your input was flagged"; Moonshot: "considered high risk"; DeepSeek:
// "Content Exists Risk"; Volcengine: "may contain sensitive information"; xAI, with 403: "violates usage guidelines".
const CONTENT_MESSAGE = anyOf(
  'content (?:filter|management policy|policy|moderation)|\\bflagged\\b|moderation|content exists risk',
  'sensitive (?:information|content|words?)|inappropriate content|considered high risk|high[- ]risk content',
  'safety (?:system|filter|polic|reasons|check)|violat.{0,60}(?:polic|guideline)|usage (?:polic|guideline)',
)

// OpenAI, Mistral, Azure.
const SUPPORT_WORDS = words(`
  unsupported_parameter unsupported_value unknown_parameter extra_forbidden operationnotsupported not_supported
  unsupported unsupported_feature
`)

// OpenRouter, with 404: "No endpoints found that support tool use"; llama.cpp, with 500: "requires --jinja", "unsupported".
const SUPPORT_MESSAGE = anyOf(
  "unsupported|(?:not|n't) (?:currently |yet )?(?:support|permitted|implemented|enabled)|endpoints found that support",
  'only support(?:s|ed)?\\b|requires? --|--jinja|must alternate|not a multimodal|maximum (?:allowed )?(?:number of )?output tokens',
)

// Anthropic, with 400: "You have reached your specified API usage limits"; Azure, with 403: "Out of call volume quota".
const QUOTA_MESSAGE = anyOf(
  '(?:out of|exceed\\w*|reached|used up).{0,40}\\b(?:quota|usage limits?|allocation)\\b',
  '\\b(?:quota|usage limits?|daily \\w+ limit)\\b.{0,60}(?:reached|exceeded|exhausted|used up)',
)

// Anthropic, TGI, Moonshot, Groq, Cerebras, Volcengine, Gemini, llama.cpp, Bedrock, DeepSeek, Zhipu.
const BUSY_WORDS = words(`
  overloaded_error overloaded engine_overloaded_error engine_overloaded capacity_exceeded queue_exceeded
  serveroverloaded unavailable unavailable_error modelnotreadyexception serviceunavailableexception
  insufficient_system_resource 1305
`)
const BUSY_MESSAGE = anyOf(
  'overloaded|at capacity|capacity exceeded|loading model|model is (?:currently )?loading',
)

// OpenAI, Anthropic, Moonshot, Azure, Cerebras, Bedrock, Alibaba, Google, Zhipu.
const LIMIT_WORDS = words(`
  rate_limit_exceeded rate_limit_error rate_limit_reached_error too_many_requests too_many_requests_error
  throttlingexception throttling.ratequota limit_requests resource_exhausted 1302
`)

/** MiniMax answers with 200 and its own number in base_resp. */
const MINIMAX: readonly FailureRow[] = [
  { kind: 'rateLimited', status: [200], word: ['1002', '1039'] },
  { kind: 'operator', status: [200], word: ['1004', '2049', '1008'] },
  { kind: 'quota', status: [200], word: ['2056'] },
  { kind: 'filtered', status: [200], word: ['1026', '1027'] },
  { kind: 'timeout', status: [200], word: ['1001'] },
]

/** Other meanings of 429 than a rate limit. */
const TOO_MUCH: readonly FailureRow[] = [
  { kind: 'tooLong', message: LARGER_THAN_A_MINUTE },
  { kind: 'quota', word: ['insufficient_quota', 'exceeded_current_quota_error'] }, // OpenAI, Moonshot
  { kind: 'operator', word: CREDIT_WORDS },
  { kind: 'overloaded', status: [429], word: BUSY_WORDS },
  { kind: 'rateLimited', word: LIMIT_WORDS },
  { kind: 'operator', status: [429], message: CREDIT_MESSAGE },
  { kind: 'quota', status: [429], message: /check your plan and billing/i },
  { kind: 'overloaded', status: [429], message: BUSY_MESSAGE },
  { kind: 'rateLimited', status: [429] },
]

const BY_WORD: readonly FailureRow[] = [
  { kind: 'filtered', word: CONTENT_WORDS },
  { kind: 'tooLong', word: LENGTH_WORDS },
  { kind: 'operator', word: [...KEY_WORDS, ...MODEL_WORDS] },
  { kind: 'overloaded', word: BUSY_WORDS },
  { kind: 'malformed', word: SUPPORT_WORDS },
  // The model wrote a tool call or JSON that does not parse (Groq, with 400): another provider may do better.
  { kind: 'failed', word: ['tool_use_failed', 'json_validate_failed', 'network_error', 'abort'] },
  { kind: 'timeout', word: ['deadline_exceeded', 'gatewaytimeout'] },
]

const BY_MESSAGE: readonly FailureRow[] = [
  { kind: 'tooLong', message: LENGTH_MESSAGE },
  { kind: 'operator', message: CREDIT_MESSAGE },
  { kind: 'operator', message: KEY_MESSAGE },
  { kind: 'filtered', message: CONTENT_MESSAGE },
  { kind: 'operator', message: MODEL_MESSAGE },
  { kind: 'overloaded', message: BUSY_MESSAGE },
  { kind: 'quota', status: [200, 400, 402, 403], message: QUOTA_MESSAGE },
  { kind: 'malformed', status: [404, 405, 500, 501], message: SUPPORT_MESSAGE },
  { kind: 'rateLimited', message: /rate.?limit|too many requests/i },
]

/** By status alone: RFC 9110, and 498 (Groq), 524 (Cloudflare), 529 (Anthropic). */
const BY_STATUS: readonly FailureRow[] = [
  { kind: 'malformed', status: [200], word: ['2013'] }, // MiniMax
  { kind: 'malformed', status: [400, 415, 422] },
  { kind: 'operator', status: [402, 404, 410] },
  { kind: 'timeout', status: [408, 504, 524] },
  { kind: 'tooLarge', status: [413] },
  { kind: 'overloaded', status: [498, 503, 529] },
]

/** The rows, in the order of matching. */
export const FAILURES: readonly FailureRow[] = [
  ...MINIMAX,
  ...TOO_MUCH,
  ...BY_WORD,
  ...BY_MESSAGE,
  ...BY_STATUS,
]
