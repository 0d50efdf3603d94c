/**
 * Groups the view `incoming` in one pass (CONTRACT 7): rows by day, app, model and what else tells them apart, in a form that
 * is the same for every batch, whatever columns its files have.
 */

const NULL_TEXT = 'CAST(NULL AS VARCHAR)'
const NULL_TIME = 'CAST(NULL AS TIMESTAMP)'

/** A column of `groups`: its value over `incoming`, the columns that needs, and the constant where no file has these. */
type GroupColumn = readonly [value: string, needs?: readonly string[], otherwise?: string]

const COLUMNS: Readonly<Record<string, GroupColumn>> = {
  app_id: ['i.app_id'],
  app: ['i.app', ['app'], NULL_TEXT],
  model: ['i.model', ['model'], NULL_TEXT],
  provider: ['i.provider', ['provider'], NULL_TEXT],
  account_id: ['i.account_id', ['app', 'account_id'], NULL_TEXT],
  app_title: ['i.app_title', ['app', 'app_title'], NULL_TEXT],
  app_categories: ['i.app_categories', ['app', 'app_categories'], NULL_TEXT],
  read: ['count(*)'],
  rows: ['CAST(sum(i.row_count) AS BIGINT)', ['row_count'], 'read'],
  requests: ['sum(i.requests)', ['requests'], 'rows'],
  prompt_tokens: ['sum(i.prompt_tokens)'],
  completion_tokens: ['sum(i.completion_tokens)'],
  reasoning_tokens: [partOf('reasoning_tokens', 'completion_tokens'), ['reasoning_tokens'], '0'],
  cached_tokens: [partOf('cached_tokens', 'prompt_tokens'), ['cached_tokens'], '0'],
  rows_large_reasoning: [
    'count(*) FILTER (i.reasoning_tokens > i.completion_tokens)',
    ['reasoning_tokens'],
    '0',
  ],
  rows_large_cached: ['count(*) FILTER (i.cached_tokens > i.prompt_tokens)', ['cached_tokens'], '0'],
  rows_failed: ['count_if(i.requests = 0)', ['requests'], '0'],
  seen_at: ['min(i.ts)', ['app'], NULL_TIME],
  served_at: ['min(CASE WHEN i.requests > 0 THEN i.ts END)', ['app'], NULL_TIME],
}

/**
 * What `few` keys have instead, NULL where they cannot count a row. The hash of a model is computed once for each text of a
 * Parquet dictionary and groups faster than the text; sums of BIGINT are added up faster.
 */
const OF_FEW: Readonly<Record<string, string>> = {
  app_id: 'CASE WHEN i.is_plain THEN i.app_id END',
  model: 'hash(model_from_text(i.model))',
  requests: 'TRY_CAST(sum(i.requests) AS BIGINT)',
  prompt_tokens: 'TRY_CAST(sum(i.prompt_tokens) AS BIGINT)',
  completion_tokens: 'TRY_CAST(sum(i.completion_tokens) AS BIGINT)',
}

/** A part that is more than the whole does not count. */
function partOf(column: string, whole: string): string {
  return `coalesce(sum(CASE WHEN i.${column} BETWEEN 0 AND i.${whole} THEN i.${column} END), 0)`
}

/** Whether valid rows have tokens; NULL for rows that are not valid. */
const HAS_TOKENS = 'CASE WHEN i.violation_but_text IS NULL THEN i.prompt_tokens IS NOT NULL END'

const MODEL_KEY = 'hash(model_from_text(model))'

const ID_HASHES = 'list(hash(i.day, i.request_id)) FILTER (i.request_id IS NOT NULL)'

/** What the files of a batch have in common. */
export type Batch = {
  /** The columns that some file has. */
  readonly columns: readonly string[]
  readonly days: ReadonlySet<string>
  /** Whether every file is text: reading it a second time, for the request ids alone, would take as long as the first. */
  readonly areText: boolean
}

/** Whether rows are grouped by day, app and model alone. */
export function isByApp({ columns }: Batch): boolean {
  return !columns.includes('app') && !columns.includes('provider')
}

/**
 * The statements for the table `grouped` and the view `groups` over it, which has the same columns for every batch. A column
 * that is the same for all rows takes no time and no place: it is in the view alone. The table `model_texts` has the texts
 * that name models, the view `ids` the hashes of days with request ids.
 * @param keys `few` suffice where every row is plain and files have no other key than app and model.
 */
export function groupQueries({ columns, days, areText }: Batch, keys: 'few' | 'all'): string {
  const isFew = keys === 'few'
  const hasHashes = columns.includes('request_id') && areText
  const [day] = days
  const fields = [
    { name: 'day', value: 'i.day', constant: days.size === 1 ? `DATE '${day}'` : undefined },
    { name: 'has_tokens', value: HAS_TOKENS, constant: isFew ? 'true' : undefined },
    ...Object.entries(COLUMNS).map(([name, [value, needs = [], otherwise]]) => {
      const isThere = needs.every((column) => columns.includes(column))
      return { name, value: (isFew && OF_FEW[name]) || value, constant: isThere ? undefined : otherwise }
    }),
    { name: 'id_hashes', value: ID_HASHES, constant: hasHashes ? undefined : 'CAST(NULL AS UBIGINT[])' },
  ]
  const grouped = fields.filter(({ constant }) => constant === undefined)
  const rows = `
    SELECT ${grouped.map(({ name, value }) => `${value} AS ${name}`).join(', ')}
    FROM incoming AS i
    GROUP BY ALL`
  const hasModels = columns.includes('model')
  const isHashed = isFew && hasModels
  const storedKey = isHashed ? 'model' : 'model_key'
  const ids = areText
    ? 'SELECT unnest(g.id_hashes) AS key FROM groups AS g'
    : 'SELECT hash(i.day, i.request_id) AS key FROM incoming AS i WHERE i.request_id IS NOT NULL'
  return `
    CREATE OR REPLACE TEMP TABLE grouped AS
    SELECT ${askedOnce(columns, isHashed)}
    FROM (${rows}) AS g;
    CREATE OR REPLACE TEMP VIEW groups AS
    SELECT ${fields.map(({ name, constant }) => (constant === undefined ? name : `${constant} AS ${name}`)).join(', ')},
      ${hasModels ? storedKey : MODEL_KEY} AS model_key
    FROM grouped;
    CREATE OR REPLACE TEMP TABLE model_texts AS
    SELECT t.text, model_from_text(t.text) AS model
    FROM (SELECT DISTINCT s.model AS text FROM ${isHashed ? 'incoming' : 'groups'} AS s) AS t;
    CREATE OR REPLACE TEMP VIEW ids AS ${ids}`
}

/** The columns of a group `g`, with what is asked once for each group, since it is slow. */
function askedOnce(columns: readonly string[], isHashed: boolean): string {
  const readable = ' REPLACE (CASE WHEN text_violation(g.app) IS NULL THEN g.has_tokens END AS has_tokens)'
  const hasTexts = columns.includes('model') && !isHashed
  return `g.*${columns.includes('app') ? readable : ''}${hasTexts ? `, ${MODEL_KEY} AS model_key` : ''}`
}
