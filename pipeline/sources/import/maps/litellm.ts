/**
 * LiteLLM proxy: the table LiteLLM_SpendLogs, as CSV or JSON. https://docs.litellm.ai/docs/proxy/spend_logs_deletion and
 * schema.prisma of the project describe its columns. The app is a virtual key, by its alias.
 *
 * Tokens: `prompt_tokens` includes the cached ones and `completion_tokens` the reasoning, as in OpenAI's API.
 */
import type { UsageMap } from '../usage-map.ts'

export const litellm: UsageMap = {
  columns: {
    ts: 'startTime',
    app: ['metadata.user_api_key_alias', 'metadata.user_api_key_team_alias'],
    prompt_tokens: 'prompt_tokens',
    completion_tokens: 'completion_tokens',
    request_id: 'request_id',
    model: ['model_group', 'model'],
    provider: 'custom_llm_provider',
    account_id: ['team_id', 'user'],
    cached_tokens: [
      'metadata.usage_object.prompt_tokens_details.cached_tokens',
      'metadata.additional_usage_values.cache_read_input_tokens',
    ],
    reasoning_tokens: 'metadata.usage_object.completion_tokens_details.reasoning_tokens',
  },
  skipped: [
    {
      path: 'call_type',
      is: ['embedding', 'image_generation', 'image_edit', 'transcription', 'speech', 'moderation', 'rerank']
        // Python's asyncio form of the call, which the proxy uses.
        .flatMap((type) => [type, `a${type}`]),
    },
  ],
  failed: [{ path: 'status', is: ['failure'] }],
}
