/** The columns of raw usage that an import copies (CONTRACT 7). */
export const USAGE_FIELDS = [
  'ts',
  'app_id',
  'app',
  'app_title',
  'app_categories',
  'prompt_tokens',
  'completion_tokens',
  'requests',
  'request_id',
  'model',
  'provider',
  'account_id',
  'reasoning_tokens',
  'cached_tokens',
] as const
export type UsageField = (typeof USAGE_FIELDS)[number]

/** A row of usage as text; null or absent if a value is missing. */
export type UsageRow = Readonly<Partial<Record<UsageField, string | null>>>
