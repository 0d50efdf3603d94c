/**
 * Langfuse: observations of the export to blob storage or of the API, as JSONL, JSON or CSV.
 * https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields describes the fields. The app is
 * `app` of the metadata, otherwise the name of the trace.
 *
 * Tokens: usage types may be additional to `input` and `output` or parts of them
 * (https://langfuse.com/docs/model-usage-and-cost). If `total` is the sum of all types they are additional and are added;
 * otherwise `input` and `output` are the whole.
 */
import type { Read, UsageMap } from '../usage-map.ts'
import { DataError } from '../../../errors.ts'
import { parseExactly } from '../../formats/json.ts'

export const langfuse: UsageMap = {
  columns: {
    ts: ['start_time', 'startTime'],
    app: ['metadata.app', 'metadata.app_name', 'trace_name', 'traceName'],
    prompt_tokens: (read) => tokensOf(read, 'input'),
    completion_tokens: (read) => tokensOf(read, 'output'),
    request_id: 'id',
    model: ['provided_model_name', 'model'],
    account_id: ['user_id', 'userId'],
    cached_tokens: ['input_cached_tokens', 'input_cache_read', 'cache_read_input_tokens'].flatMap(inUsage),
    reasoning_tokens: ['output_reasoning_tokens', 'output_reasoning'].flatMap(inUsage),
  },
  skipped: [{ path: 'type', not: ['generation'] }],
  failed: [{ path: 'level', is: ['error'] }],
}

function inUsage(type: string): string[] {
  return [`usage_details.${type}`, `usageDetails.${type}`]
}

/** The tokens of one side, `input` or `output`, with its additional types. */
function tokensOf(read: Read, side: 'input' | 'output'): string | null {
  const { total, ...parts } = numbersIn(read('usage_details') ?? read('usageDetails') ?? '{}')
  if (total === undefined || total !== sumOf(Object.values(parts))) {
    return read(`usage_details.${side}`) ?? read(`usageDetails.${side}`)
  }
  const ofSide = Object.entries(parts).filter(([type]) => type.includes(side))
  return String(sumOf(ofSide.map(([, count]) => count)))
}

function sumOf(counts: readonly bigint[]): bigint {
  return counts.reduce((sum, count) => sum + count, 0n)
}

/** @throws DataError for usage that is not JSON. */
function numbersIn(text: string): Readonly<Record<string, bigint>> {
  let usage: unknown
  try {
    usage = parseExactly(text)
  } catch (error) {
    throw new DataError(`usage_details is not JSON: ${text.slice(0, 100)}`, { cause: error })
  }
  const counts = Object.entries(usage ?? {}).filter(([, count]) => /^\d{1,27}$/.test(String(count)))
  return Object.fromEntries(counts.map(([type, count]) => [type, BigInt(String(count))]))
}
