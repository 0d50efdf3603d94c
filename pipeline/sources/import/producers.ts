/**
 * The producers of `import --from`, each a map from its export to rows of raw usage. A comment states where the fields are
 * described, which of them names the app, and what the token counts include.
 */
import { isRecord, parseExactly } from '../formats/json.ts'
import { otlp } from './otlp.ts'
import { rowsAt, type Read, type UsageMap } from './usage-map.ts'

/** Types of calls that generate text, each also with the prefix of Python's asyncio form, which the proxy uses. */
const LITELLM_GENERATIONS = [
  'completion text_completion responses responses_websocket anthropic_messages realtime pass_through_endpoint',
  'generate_content generate_content_stream llm_passthrough_route retrieve_batch run_thread run_thread_stream',
]
  .flatMap((types) => types.split(' '))
  .flatMap((type) => [type, `a${type}`, `_a${type}`])

/**
 * LiteLLM proxy: the table LiteLLM_SpendLogs as CSV or JSON, replies of the API for it, or what its log callbacks write (with
 * `--map ts=startTime:s`). schema.prisma, CallTypes and StandardLoggingPayload of the project describe them. The app is a
 * virtual key, by its alias. `prompt_tokens` includes the cached tokens, and `completion_tokens` the reasoning. A request that
 * failed before its call has no type.
 */
const litellm: UsageMap = {
  columns: {
    ts: 'startTime',
    app: ['metadata.user_api_key_alias', 'metadata.user_api_key_team_alias'],
    prompt_tokens: 'prompt_tokens',
    completion_tokens: 'completion_tokens',
    request_id: ['request_id', 'id'],
    model: ['model_group', 'model'],
    provider: 'custom_llm_provider',
    account_id: ['team_id', 'user'],
    cached_tokens: [
      'metadata.usage_object.prompt_tokens_details.cached_tokens',
      'metadata.additional_usage_values.cache_read_input_tokens',
    ],
    reasoning_tokens: 'metadata.usage_object.completion_tokens_details.reasoning_tokens',
  },
  rows: rowsAt('data'),
  skipped: [{ path: 'call_type', not: LITELLM_GENERATIONS }],
  failed: [{ path: 'status', is: ['failure'] }],
}

/**
 * OpenRouter: the export of the activity page as CSV, replies about one generation, and replies of the activity API (`{ data:
 * [{ date, requests, … }] }`, which name no app). https://openrouter.ai/docs/guides/guides/activity-export and
 * https://openrouter.ai/docs/api-reference describe them. `native` tokens are those of the provider; the prompt includes the
 * cached tokens, and the completion the reasoning. A cancelled generation was served in part, and counts.
 */
const openrouter: UsageMap = {
  columns: {
    ts: ['created_at', 'date'],
    app: ['app_name', 'origin', 'http_referer'],
    prompt_tokens: ['native_tokens_prompt', 'tokens_prompt', 'prompt_tokens'],
    completion_tokens: ['native_tokens_completion', 'tokens_completion', 'completion_tokens'],
    requests: 'requests',
    request_id: ['generation_id', 'id'],
    model: ['model_permaslug', 'model'],
    provider: 'provider_name',
    account_id: 'api_key_name',
    reasoning_tokens: ['native_tokens_reasoning', 'tokens_reasoning', 'reasoning_tokens'],
    cached_tokens: ['native_tokens_cached', 'tokens_cached'],
  },
  rows: rowsAt('data'),
  skipped: [{ path: 'api_type', is: ['embeddings', 'rerank', 'tts', 'stt', 'image', 'video'] }],
  failed: ['finish_reason_normalized', 'finish_reason'].map((path) => ({ path, is: ['error'] })),
}

/**
 * Cloudflare AI Gateway: replies of its API for logs, or their rows as NDJSON.
 * https://developers.cloudflare.com/api/resources/ai_gateway/subresources/logs/ describes them; what Logpush writes has no
 * tokens. The app is `app` in the requests' metadata. Tokens have no parts. Replies from the gateway's cache count too.
 */
const cloudflare: UsageMap = {
  columns: {
    ts: 'created_at',
    app: ['metadata.app', 'metadata.app_name', 'metadata.application'],
    prompt_tokens: 'tokens_in',
    completion_tokens: 'tokens_out',
    request_id: 'id',
    model: 'model',
    provider: 'provider',
    account_id: ['metadata.account', 'metadata.user'],
  },
  rows: rowsAt('result'),
  skipped: [{ path: 'model_type', is: ['embeddings', 'embedding'] }],
  failed: [{ path: 'success', is: ['false', '0'] }],
}

/** Common names of the property that names the app. */
const HELICONE_PROPERTIES = ['app', 'appname', 'app_name', 'app-name', 'application']

/**
 * Helicone: requests from its export tool (`npx @helicone/export`) or its API, as JSONL, JSON or CSV.
 * https://docs.helicone.ai/tools/export and https://docs.helicone.ai/rest/request/post-v1requestquery-clickhouse describe
 * the fields. The app is the property `App` of the requests (header Helicone-Property-App), else their referrer. Tokens read
 * from the provider's cache are kept beside the prompt, whether or not it includes them.
 */
const helicone: UsageMap = {
  columns: {
    ts: ['request_created_at', 'response_created_at'],
    app: [
      ...HELICONE_PROPERTIES.flatMap((name) => [`request_properties.${name}`, `properties.${name}`]),
      'request_referrer',
    ],
    prompt_tokens: 'prompt_tokens',
    completion_tokens: 'completion_tokens',
    request_id: ['request_id', 'response_id'],
    model: ['response_model', 'model', 'request_model'],
    provider: 'provider',
    account_id: ['request_user_id', 'helicone_user'],
    reasoning_tokens: 'reasoning_tokens',
    cached_tokens: 'prompt_cache_read_tokens',
  },
  rows: rowsAt('data'),
  // The paths of OpenAI and Google.
  skipped: [
    (read) =>
      /[/:](?:embeddings|moderations|rerank|(?:batch)?embedcontents?)\/?(?:\?|$)/i.test(
        read('request_path') ?? '',
      ),
  ],
  failed: [{ path: 'response_status', not: ['200', '201', '202'] }],
}

/**
 * Langfuse: observations of the export to blob storage, or replies of the API, as JSONL, JSON or CSV.
 * https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields describes the fields. The app is
 * `app` of the metadata, otherwise the name of the trace.
 */
const langfuse: UsageMap = {
  columns: {
    ts: ['start_time', 'startTime'],
    app: ['metadata.app', 'metadata.app_name', 'trace_name', 'traceName'],
    prompt_tokens: (read) => langfuseTokens(read, 'input') ?? read('promptTokens'),
    completion_tokens: (read) => langfuseTokens(read, 'output') ?? read('completionTokens'),
    request_id: 'id',
    model: ['provided_model_name', 'providedModelName', 'model'],
    account_id: ['user_id', 'userId'],
    cached_tokens: ['input_cached_tokens', 'input_cache_read', 'cache_read_input_tokens'].flatMap(inDetails),
    reasoning_tokens: ['output_reasoning_tokens', 'output_reasoning'].flatMap(inDetails),
  },
  rows: rowsAt('data'),
  skipped: [{ path: 'type', not: ['generation'] }],
  failed: [{ path: 'level', is: ['error'] }],
}

function inDetails(type: string): string[] {
  return [`usage_details.${type}`, `usageDetails.${type}`]
}

/**
 * The tokens of one side. Usage types may be additional to `input` and `output` or parts of them
 * (https://langfuse.com/docs/model-usage-and-cost). If `total` is the sum of all types they are additional and are added;
 * otherwise `input` and `output` are the whole.
 */
function langfuseTokens(read: Read, side: 'input' | 'output'): string | null {
  const { total, ...types } = countsIn(read('usage_details') ?? read('usageDetails') ?? '{}')
  if (total === undefined || total !== sumOf(Object.values(types))) {
    return read(`usage_details.${side}`) ?? read(`usageDetails.${side}`) ?? read(`usage.${side}`)
  }
  const ofSide = Object.entries(types).filter(([type]) => type.includes(side))
  return String(sumOf(ofSide.map(([, count]) => count)))
}

function sumOf(counts: readonly bigint[]): bigint {
  return counts.reduce((sum, count) => sum + count, 0n)
}

/** @throws SyntaxError for usage that is not JSON. */
function countsIn(text: string): Readonly<Record<string, bigint>> {
  const usage = parseExactly(text)
  const counts = Object.entries(isRecord(usage) ? usage : {}).filter(([, count]) =>
    /^\d{1,27}$/.test(String(count)),
  )
  return Object.fromEntries(counts.map(([type, count]) => [type, BigInt(String(count))]))
}

/** By name. */
export const PRODUCERS: Readonly<Record<string, UsageMap>> = {
  litellm,
  openrouter,
  cloudflare,
  langfuse,
  helicone,
  otlp,
}
