/**
 * Cloudflare AI Gateway: its logs by Logpush or by the API, as NDJSON. The dataset is described in
 * https://developers.cloudflare.com/ai-gateway/observability/logging/logpush/ and
 * https://developers.cloudflare.com/api/resources/ai_gateway/subresources/logs/. The app is `app` in the requests' metadata.
 *
 * Tokens: `tokens_in` and `tokens_out` of the log, which has no parts. Replies from the gateway's cache count too.
 */
import type { UsageMap } from '../usage-map.ts'

export const cloudflare: UsageMap = {
  columns: {
    ts: ['created_at', 'CreatedAt', 'datetime'],
    app: ['metadata.app', 'metadata.app_name', 'metadata.application'],
    prompt_tokens: ['tokens_in', 'TokensIn'],
    completion_tokens: ['tokens_out', 'TokensOut'],
    request_id: 'id',
    model: 'model',
    provider: 'provider',
    account_id: ['metadata.account', 'metadata.user'],
  },
  leaveOut: [{ path: 'model_type', is: ['embeddings', 'embedding'] }],
  failed: [{ path: 'success', is: ['false', '0'] }],
}
