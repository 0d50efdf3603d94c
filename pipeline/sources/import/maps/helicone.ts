/**
 * Helicone: requests from its export tool (`npx @helicone/export`) or its API, JSONL, JSON or CSV.
 * https://docs.helicone.ai/tools/export and https://docs.helicone.ai/rest/request/post-v1requestquery-clickhouse describe
 * the fields. The app is the property `App` of the requests (header Helicone-Property-App), else their referrer.
 *
 * Tokens: `prompt_tokens` and `completion_tokens` of Helicone. Tokens read from the provider's cache
 * (`prompt_cache_read_tokens`) are kept beside them, whether or not `prompt_tokens` includes them.
 */
import { rowsAt } from '../usage-map.ts'
import type { UsageMap } from '../usage-map.ts'

/** Common names of the property. */
const PROPERTIES = ['app', 'appname', 'app_name', 'app-name', 'application']

/** Ends of the paths of requests that generate nothing, by the names of OpenAI and Google. */
const NO_GENERATION = /[/:](?:embeddings|moderations|rerank|(?:batch)?embedcontents?)\/?(?:\?|$)/

export const helicone: UsageMap = {
  columns: {
    ts: ['request_created_at', 'response_created_at'],
    app: [
      ...PROPERTIES.flatMap((name) => [`request_properties.${name}`, `properties.${name}`]),
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
  skipped: [{ path: 'request_path', matches: NO_GENERATION }],
  failed: [{ path: 'response_status', not: ['200', '201', '202'] }],
}
