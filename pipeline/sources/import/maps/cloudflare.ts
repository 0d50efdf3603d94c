/**
 * Cloudflare AI Gateway: replies of its API for logs, or their rows as NDJSON.
 * https://developers.cloudflare.com/api/resources/ai_gateway/subresources/logs/ describes them; what Logpush writes has no
 * tokens. The app is `app` in the requests' metadata.
 *
 * Tokens: `tokens_in` and `tokens_out` of the log, which has no parts. Replies from the gateway's cache count too.
 */
import { rowsAt } from '../usage-map.ts'
import type { UsageMap } from '../usage-map.ts'

export const cloudflare: UsageMap = {
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
