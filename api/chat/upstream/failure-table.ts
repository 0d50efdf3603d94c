/**
 * The meaning of providers' errors, as a table: the first matching row gives the kind. A status alone means little: one
 * provider rejects a bad key with 400, another an empty account with 429.
 */
import type { FailureKind } from '../routing/failure.ts'

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

/** Any of these expressions, in upper or lower case. */
function anyOf(...patterns: readonly string[]): RegExp {
  return new RegExp(patterns.join('|'), 'i')
}

const CREDIT_WORDS = [
  'billing_hard_limit_reached', // OpenAI, with 400
  'billing_not_active', // OpenAI
  'insufficient_balance', // DeepSeek, Novita
  'insufficient_credits', // OpenRouter
  'not_enough_balance', // Novita, with 403
  'budget_exceeded', // LiteLLM, with 400
  'billing_error', // Anthropic
  'billing_disabled', // Google
  'arrearage', // Alibaba Model Studio, with 400
  'accountoverdueerror', // Volcengine
  'allocationquota.freetieronly', // Alibaba Model Studio, with 403
  '1113', // Zhipu, with 429
  '30001', // SiliconFlow, with 403
]

// Anthropic: "Your credit balance is too low"; xAI: "used all available credits or reached its monthly spending
// limit"; Alibaba: "make sure your account is in good standing"; Fireworks: "reaching the monthly spending limit";
// Gemini: "enable billing"; DeepInfra: "please top up".
const CREDIT_MESSAGE = anyOf(
  'balance.{0,40}(?:too low|insufficient|not enough|negative|exhausted)',
  '(?:insufficient|not enough)[ _]*(?:account )?(?:balance|credits?|funds)',
  '(?:used all|out of|not enough|enough|need more|any|add) (?:available )?credits?\\b',
  'credit limit',
  '(?:billing|spending) (?:hard )?limit',
  'payment (?:method|required)|(?:enable|set up|activate) billing|\\btop(?:ping)?[ -]up\\b',
  '\\barrears?\\b|\\boverdue\\b|in good standing',
  'exceeded your (?:monthly )?included credits',
)

const LENGTH_WORDS = [
  'context_length_exceeded', // OpenAI, Azure, Groq, Cerebras
  'exceed_context_size_error', // llama.cpp
  'string_above_max_length', // OpenAI
  'tokens_limit_reached', // GitHub Models, with 413
  'contextwindowexceedederror', // LiteLLM
  'context_window_exceeded',
  '3051', // Mistral
  '1261', // Zhipu
]

// OpenAI and vLLM: "maximum context length is 8192 tokens"; Anthropic: "prompt is too long: 210000 tokens > 200000
// maximum", "input length and `max_tokens` exceed context limit"; llama.cpp: "exceeds the available context size";
// Gemini: "input token count (…) exceeds the maximum number of tokens allowed"; Bedrock: "Input is too long for
// requested model"; TGI: "`inputs` must have less than 4096 tokens"; Cohere: "too many tokens"; SGLang and vLLM: "is
// longer than the model's context length"; Alibaba: "Range of input length should be"; Moonshot: "exceeded model
// token limit"; LM Studio: "context length of only 4096 tokens"; Cerebras: "Current length is 9000 while limit is"; xAI:
// "maximum prompt length is"; Bedrock: "exceeds maximum length"; Volcengine: "exceed max message tokens"; watsonx:
// "cannot exceed the total tokens limit"; older llama.cpp: "too big compared to KV size", "input is too large to process".
const LENGTH_MESSAGE = anyOf(
  'maximum (?:context|prompt|input|model|sequence) length|context length of only',
  'context[ _-]?(?:length|window|size|limit).{0,40}(?:exceed|overflow|too small)',
  'exceed.{0,60}(?:context|maximum number of tokens|tokens? limit|(?:input|sequence|model|prompt) (?:length|limit))',
  'exceeds? (?:the )?max(?:imum)? (?:length|\\w* ?tokens)|too big compared to KV|too large to process',
  '(?:prompt|inputs?|messages?|conversation|query).{0,60}(?:too long|too many tokens|too large for model)',
  'too many (?:input |prompt )?tokens',
  '(?:longer|greater) than the (?:model|maximum|context)',
  'must have less than \\d+ tokens|max_new_tokens.{0,10}must be <=|less than max_seq_len',
  'range of input length|current length is \\d+ while limit',
  '(?:reduce|shorten) (?:the length of |your )(?:the |your )?(?:messages?|prompt|input)',
)

// OpenAI and Groq, with 429 or 413: this one request exceeds the tokens of a minute, so waiting does not help.
const LARGER_THAN_A_MINUTE = anyOf(
  'request too large for',
  'tokens must be reduced',
  'reduce your message size',
)

const KEY_WORDS = [
  'invalid_api_key', // OpenAI, Groq
  'api_key_invalid', // Gemini, with 400
  'wrong_api_key', // Cerebras
  'authentication_error', // Anthropic
  'invalid_authentication_error', // Moonshot
  'unauthenticated', // Google
  'permission_error', // Anthropic
  'permission_denied', // Google
  'service_disabled', // Google
  'consumer_suspended', // Google
  'account_deactivated', // OpenAI
  'organization_restricted', // Groq, with 400
  'unsupported_country_region_territory', // OpenAI
  'accessdeniedexception', // Bedrock
  'unrecognizedclientexception', // Bedrock
  'expiredtokenexception', // Bedrock
]

// Gemini: "API key not valid", "User location is not supported", both with 400; xAI: "Incorrect API key provided",
// with 400; DeepSeek: "Authentication Fails".
const KEY_MESSAGE = anyOf(
  '(?:api|access|subscription|auth\\w*)[ _-]?(?:key|token).{0,40}(?:invalid|not valid|incorrect|expired|revoked|disabled|missing|not found)',
  '(?:invalid|incorrect|expired|revoked|wrong|unknown|missing|bad|no) (?:\\w+ )?(?:api|access|auth\\w*)[ _-]?(?:key|token)',
  'authentication (?:fail|required|error)|unauthori[sz]ed',
  '(?:organi[sz]ation|account|project|team) (?:has been|is|was) (?:restricted|suspended|disabled|deactivated|blocked)',
  'location is not supported',
)

const MODEL_WORDS = [
  'model_not_found', // OpenAI, Groq, Hugging Face
  'model_not_available', // Together
  'model_not_supported', // Hugging Face, with 400
  'model_decommissioned', // Groq, with 400
  'model_deprecated',
  'model_terms_required', // Groq, with 400
  'unknown_model', // GitHub Models, with 400
  'unavailable_model', // GitHub Models, with 400
  'invalid_model', // Mistral and Perplexity, with 400
  'deploymentnotfound', // Azure
  'modelnotopen', // Volcengine
  'invalidendpointormodel.notfound', // Volcengine
  '1211', // Zhipu
  '1500', // Mistral
  '20012', // SiliconFlow, with 400
  '30003', // SiliconFlow, with 403
]

// DeepSeek: "Model Not Exist", with 400; OpenRouter: "is not a valid model ID", "No endpoints found for"; Bedrock:
// "The provided model identifier is invalid", "with on-demand throughput isn't supported"; LM Studio: "No models
// loaded"; Gemini: "models/… is not found for API version".
const MODEL_MESSAGE = anyOf(
  "\\bmodels?\\b.{0,120}(?:(?:does|do|did) ?(?:not|n't) exist|not exist|not found|not (?:currently )?available|unavailable|not loaded|no longer|decommissioned|deprecated|retired|shut down|disabled)",
  '(?:unknown|invalid|no such|unrecogni[sz]ed|unsupported|unable to access) (?:non-serverless )?model\\b',
  'not a valid model|no models? (?:is )?loaded|model identifier is invalid|on-demand throughput',
  'no endpoints found (?:for|matching)|not supported by any provider',
)

const CONTENT_WORDS = [
  'content_filter', // OpenAI, Azure, Moonshot
  'responsibleaipolicyviolation', // Azure
  'content_policy_violation', // OpenAI
  'moderation_blocked', // OpenAI
  'invalid_prompt', // OpenAI
  'data_inspection_failed', // Alibaba Model Studio
  'datainspectionfailed', // Alibaba Model Studio
  'sensitivecontentdetected', // Volcengine
  'prohibited_content', // Gemini
  'guardrail_intervened', // Bedrock
  '1301', // Zhipu
]

// Azure: "content management policy"; Anthropic: "content filtering policy"; OpenRouter: "your input was flagged";
// Moonshot: "considered high risk"; Alibaba: "inappropriate content"; DeepSeek: "Content Exists Risk"; Volcengine: "may
// contain sensitive information".
const CONTENT_MESSAGE = anyOf(
  'content (?:filter|management policy|policy|moderation)',
  '\\bflagged\\b|moderation|content exists risk|sensitive (?:information|content|words?)|inappropriate content|considered high risk|high[- ]risk content',
  'safety (?:system|filter|polic|reasons)|violat.{0,60}polic|usage polic',
)

const SUPPORT_WORDS = [
  'unsupported_parameter', // OpenAI
  'unsupported_value', // OpenAI
  'unknown_parameter', // OpenAI
  'extra_forbidden', // Mistral, with 422
  'operationnotsupported', // Azure
  'not_supported',
  'unsupported',
  'unsupported_feature',
]

// OpenAI: "is not supported with this model", "Unrecognized request argument"; Ollama: "does not support tools"; Groq:
// "property 'x' is unsupported"; Gemini: "Unknown name"; vLLM: "requires --enable-auto-tool-choice", "roles must
// alternate", "At most 1 image(s) may be provided", "is not a multimodal model"; OpenAI: "max_tokens is too large",
// "is only supported by certain models"; Anthropic: "which is the maximum allowed number of output tokens"; OpenRouter:
// "No endpoints found that support tool use".
const SUPPORT_MESSAGE = anyOf(
  "unsupported|(?:not|n't) (?:currently |yet )?(?:support|permitted|implemented|enabled)|endpoints found that support",
  '(?:unrecogni[sz]ed|unknown|unexpected) (?:\\w+ )?(?:argument|field|parameter|param|property|key|name)\\b',
  'extra (?:inputs|fields)|only support(?:s|ed)?\\b|maximum (?:allowed )?(?:number of )?output tokens|supports? (?:at most|only)|requires? --|--jinja',
  'must alternate|at most \\d+ (?:image|audio|video)|not a multimodal|is too large',
)

// Anthropic, with 400: "You have reached your specified API usage limits"; Azure, with 403: "Out of call volume quota";
// watsonx, with 403: "The usage token quota for this account has been reached"; Baidu, with 200: "daily request limit".
const QUOTA_MESSAGE = anyOf(
  '(?:out of|exceed\\w*|reached|used up).{0,40}\\b(?:quota|usage limits?|allocation)\\b',
  '\\b(?:quota|usage limits?|daily \\w+ limit)\\b.{0,60}(?:reached|exceeded|exhausted|used up)',
)

const BUSY_WORDS = [
  'overloaded_error', // Anthropic
  'overloaded', // TGI
  'engine_overloaded_error', // Moonshot, with 429
  'engine_overloaded',
  'capacity_exceeded', // Groq, with 498
  'queue_exceeded', // Cerebras, with 429
  'serveroverloaded', // Volcengine, with 429
  'unavailable', // Gemini
  'unavailable_error', // llama.cpp
  'modelnotreadyexception', // Bedrock, with 429
  'serviceunavailableexception', // Bedrock
  'insufficient_system_resource', // DeepSeek, as the end of a choice
  '1305', // Zhipu
]

const BUSY_MESSAGE = anyOf(
  'overloaded|at capacity|capacity exceeded|loading model|model is (?:currently )?loading',
)

const LIMIT_WORDS = [
  'rate_limit_exceeded', // OpenAI, Groq
  'rate_limit_error', // Anthropic
  'rate_limit_reached_error', // Moonshot
  'too_many_requests', // Azure
  'too_many_requests_error', // Cerebras
  'throttlingexception', // Bedrock
  'throttling.ratequota', // Alibaba Model Studio
  'limit_requests', // Alibaba Model Studio
  'resource_exhausted', // Google, with the word quota for limits of a minute too
  '1302', // Zhipu
]

/** MiniMax answers with 200 and its own number in base_resp. */
const MINIMAX: readonly FailureRow[] = [
  { kind: 'rateLimited', status: [200], word: ['1002', '1039'] },
  { kind: 'denied', status: [200], word: ['1004', '2049'] },
  { kind: 'outOfCredit', status: [200], word: ['1008'] },
  { kind: 'quotaUsedUp', status: [200], word: ['2056'] },
  { kind: 'filtered', status: [200], word: ['1026', '1027'] },
  { kind: 'timeout', status: [200], word: ['1001'] },
]

/** Other meanings of 429 than a rate limit. */
const TOO_MUCH: readonly FailureRow[] = [
  { kind: 'tooLong', message: LARGER_THAN_A_MINUTE },
  { kind: 'quotaUsedUp', word: ['insufficient_quota', 'exceeded_current_quota_error'] }, // OpenAI, Moonshot
  { kind: 'outOfCredit', word: CREDIT_WORDS },
  { kind: 'overloaded', status: [429], word: BUSY_WORDS },
  { kind: 'rateLimited', word: LIMIT_WORDS },
  { kind: 'outOfCredit', status: [429], message: CREDIT_MESSAGE },
  { kind: 'quotaUsedUp', status: [429], message: /check your plan and billing/i },
  { kind: 'overloaded', status: [429], message: BUSY_MESSAGE },
  { kind: 'rateLimited', status: [429] },
]

const BY_WORD: readonly FailureRow[] = [
  { kind: 'filtered', word: CONTENT_WORDS },
  { kind: 'tooLong', word: LENGTH_WORDS },
  { kind: 'denied', word: KEY_WORDS },
  { kind: 'noSuchModel', word: MODEL_WORDS },
  { kind: 'overloaded', word: BUSY_WORDS },
  { kind: 'unsupported', word: SUPPORT_WORDS },
  // The model wrote a tool call or JSON that does not parse (Groq, with 400): another provider may do better.
  { kind: 'failed', word: ['tool_use_failed', 'json_validate_failed', 'network_error', 'abort'] },
  { kind: 'timeout', word: ['deadline_exceeded', 'gatewaytimeout'] },
]

const BY_MESSAGE: readonly FailureRow[] = [
  { kind: 'tooLong', message: LENGTH_MESSAGE },
  { kind: 'outOfCredit', message: CREDIT_MESSAGE },
  { kind: 'denied', message: KEY_MESSAGE },
  { kind: 'filtered', message: CONTENT_MESSAGE },
  { kind: 'noSuchModel', message: MODEL_MESSAGE },
  { kind: 'overloaded', message: BUSY_MESSAGE },
  { kind: 'quotaUsedUp', status: [200, 400, 402, 403], message: QUOTA_MESSAGE },
  { kind: 'unsupported', status: [400, 404, 405, 415, 422, 500, 501], message: SUPPORT_MESSAGE },
  { kind: 'rateLimited', message: /rate.?limit|too many requests/i },
]

/** By status alone: RFC 9110, and 498 (Groq), 524 (Cloudflare), 529 (Anthropic). */
const BY_STATUS: readonly FailureRow[] = [
  { kind: 'refused', status: [200], word: ['2013'] }, // MiniMax
  { kind: 'refused', status: [400, 415, 422] },
  { kind: 'outOfCredit', status: [402] },
  { kind: 'noSuchModel', status: [404, 410] },
  { kind: 'timeout', status: [408, 504, 524] },
  { kind: 'tooLarge', status: [413] },
  { kind: 'overloaded', status: [498, 503, 529] },
]

/** The rows, in the order of matching. */
export const FAILURE_TABLE: readonly FailureRow[] = [
  ...MINIMAX,
  ...TOO_MUCH,
  ...BY_WORD,
  ...BY_MESSAGE,
  ...BY_STATUS,
]
