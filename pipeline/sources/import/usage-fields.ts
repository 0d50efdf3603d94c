import { USAGE_COLUMNS } from '../columns.ts'

/** The columns of raw usage that an import copies (CONTRACT 7). */
export const USAGE_FIELDS = [
  ...USAGE_COLUMNS.required,
  ...USAGE_COLUMNS.optional.filter((column) => column !== 'row_count'),
  ...USAGE_COLUMNS.descriptive,
] as const
export type UsageField = (typeof USAGE_FIELDS)[number]

/** A row of usage as text; null or absent if a value is missing. */
export type UsageRow = Readonly<Partial<Record<UsageField, string | null>>>
