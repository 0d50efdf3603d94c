/**
 * OpenRouter: the export of the activity page, as CSV, and replies of the activity API (`{ data: [{ date, requests, … }] }`,
 * which name no app). https://openrouter.ai/docs/guides/guides/activity-export and the
 * reply of https://openrouter.ai/docs/api-reference/get-a-generation describe its columns. A cancelled generation was
 * served in part, and counts.
 *
 * Tokens: `tokens_prompt` includes the cached ones and `tokens_completion` the reasoning.
 */
import { rowsAt } from '../usage-map.ts'
import type { UsageMap } from '../usage-map.ts'

export const openrouter: UsageMap = {
  columns: {
    ts: ['created_at', 'date'],
    app: ['app_name', 'origin', 'http_referer'],
    prompt_tokens: ['tokens_prompt', 'native_tokens_prompt', 'prompt_tokens'],
    completion_tokens: ['tokens_completion', 'native_tokens_completion', 'completion_tokens'],
    requests: 'requests',
    request_id: ['generation_id', 'id'],
    model: ['model_permaslug', 'model'],
    provider: 'provider_name',
    account_id: 'api_key_name',
    reasoning_tokens: ['tokens_reasoning', 'native_tokens_reasoning', 'reasoning_tokens'],
    cached_tokens: ['tokens_cached', 'native_tokens_cached'],
  },
  rows: rowsAt('data'),
  skipped: [{ path: 'api_type', is: ['embeddings', 'rerank'] }],
  failed: [{ path: 'finish_reason_normalized', is: ['error'] }],
}
