/**
 * What others may know of the dataset: its calendar, its taxonomy, its shapes, where a snapshot lies and where raw
 * usage is counted.
 * The one file of the pipeline that api/ imports; it imports nothing of ours.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { UTCDate } from '@date-fns/utc'
// By function: the package's index is read for more than a second at every start.
import { addDays as plusDays } from 'date-fns/addDays'
import { isValid } from 'date-fns/isValid'
import { lightFormat } from 'date-fns/lightFormat'
import { parseISO } from 'date-fns/parseISO'
import { z } from 'zod'

/** First day of the dataset (UTC). Usage before it is not part of the dataset; windows are clamped to it. */
export const FLOOR_DATE = '2025-01-01'

/** Label of the dataset's schema; it stays as long as field names and grain do (CONTRACT 4.3). */
export const DATASET_VERSION = 'v1'

/** The two orders of the rankings (CONTRACT 4.2). */
export const SORTS = ['popular', 'trending'] as const
export type Sort = (typeof SORTS)[number]

/** Category groups (CONTRACT 4.4). */
export const CATEGORIES = ['coding', 'creative', 'productivity', 'entertainment'] as const
export type Category = (typeof CATEGORIES)[number]

/** The subcategories inside each group; a subcategory belongs to exactly one (CONTRACT 4.4). */
export const TAXONOMY = {
  coding: ['cli-agent', 'ide-extension', 'cloud-agent', 'programming-app', 'native-app-builder'],
  creative: ['creative-writing', 'video-gen', 'image-gen', 'audio-gen'],
  productivity: ['writing-assistant', 'general-chat', 'personal-agent', 'legal'],
  entertainment: ['roleplay', 'game'],
} as const satisfies Record<Category, readonly string[]>

export type Subcategory = (typeof TAXONOMY)[Category][number]

export const SUBCATEGORIES: readonly Subcategory[] = Object.values(TAXONOMY).flat()

/** The subcategories inside a group. */
export function subcategoriesOf(category: Category): readonly Subcategory[] {
  return TAXONOMY[category]
}

/** What the table coverage says of a day. */
export const COVERAGE_STATUSES = ['complete', 'partial', 'restated', 'missing'] as const
export type CoverageStatus = (typeof COVERAGE_STATUSES)[number]

/** app_id of requests that name no app: they are counted and never ranked, and no app may be registered under it. */
export const UNATTRIBUTED_APP_ID = 0

/** Licence of the published data and the address of its text. */
export const LICENCE = {
  name: 'CC-BY-4.0',
  url: 'https://creativecommons.org/licenses/by/4.0/',
} as const

/** To be said wherever the data is offered (CONTRACT 1). */
export const COMPARABILITY_NOTE =
  "Token counts come from each upstream provider's own tokenizer, so tokens of apps whose traffic flows " +
  'through different providers are not strictly comparable.'

/**
 * How a text begins that spreadsheets take for a formula, as a regular expression: with a sign, in its East Asian width
 * too, or with a control character, which they may skip. App names come from strangers, so in CSV such a text gets an
 * apostrophe before it, which makes it text again and is not shown.
 */
export const SPREADSHEET_FORMULA = String.raw`^[=+\-@＝＋－＠\x00-\x1f]`

/** The DuckDB file of a snapshot. */
export const SNAPSHOT_FILE = 'app-rankings.duckdb'

/** The port that the API listens on unless PORT names one. */
export const DEFAULT_PORT = 3000

/**
 * Where the service is reached on its own machine, unless PUBLIC_URL says how the public reaches it.
 * @param port the setting PORT as it is set; 0, which stands for any free port, tells as little as none.
 */
export function localUrl(port = ''): string {
  return `http://127.0.0.1:${/^[1-9]\d{0,4}$/.test(port) ? port : DEFAULT_PORT}`
}

/** Path under which the API lists the snapshots and hands out their files (CONTRACT 4.6). */
export const SNAPSHOTS_PATH = '/api/v1/datasets/app-rankings/snapshots'

/** Folder of the snapshots and the pointer to the newest, relative to DATA_DIR (CONTRACT 8). */
export const SNAPSHOTS_FOLDER = 'snapshots'
export const CURRENT_POINTER = 'current'

/** Folder inside SNAPSHOTS_FOLDER with a file `<id>.json` per withdrawn snapshot (CONTRACT 4.6). */
export const RETRACTIONS_FOLDER = 'retracted'

/** Why a snapshot was withdrawn; its data is gone, this stays. */
export const retractionSchema = z.strictObject({
  id: z.string(),
  as_of: z.iso.datetime({ precision: 0 }),
  reason: z.string(),
  retracted_at: z.iso.datetime({ precision: 0 }),
})
export type Retraction = z.infer<typeof retractionSchema>

/** Hour at which the nightly run starts unless NIGHTLY_SCHEDULE says otherwise: 02:00 UTC (cron form). */
export const DEFAULT_SCHEDULE = '0 2 * * *'

const SNAPSHOT_ID = /^\d{8}T\d{6}Z$/

/** A calendar day in UTC, `YYYY-MM-DD`. */
export function utcDay(time: Date): string {
  // Asked for with each request; a formatter of dates takes ten times as long.
  return time.toISOString().slice(0, 'YYYY-MM-DD'.length)
}

/** The day that lies `days` after `day` (before, when negative), both `YYYY-MM-DD`. */
export function addDays(day: string, days: number): string {
  return utcDay(plusDays(new UTCDate(day), days))
}

/** The most recent UTC day that is over at `now`: what a run at `now` may publish up to (CONTRACT 7). */
export function lastCompletedDay(now: Date): string {
  return addDays(utcDay(now), -1)
}

/** Time in the dataset's one precision: ISO 8601 UTC, whole seconds, `2026-11-20T02:00:00Z`. */
export function wholeSeconds(time: Date): string {
  return lightFormat(new UTCDate(time), "yyyy-MM-dd'T'HH:mm:ss'Z'")
}

/** Identifier of the snapshot computed at `asOf`: the time in basic form, `20261120T020000Z`. */
export function snapshotId(asOf: Date): string {
  return lightFormat(new UTCDate(asOf), "yyyyMMdd'T'HHmmss'Z'")
}

/** The time a snapshot was computed, from its identifier; undefined for any other text. */
export function asOfFromId(id: string): Date | undefined {
  const time = SNAPSHOT_ID.test(id) ? parseISO(id) : undefined
  return isValid(time) ? time : undefined
}

/** A calendar date that exists, `YYYY-MM-DD`. */
export const daySchema = z.iso.date()

/** One row of the rankings as the API hands it out (CONTRACT 4.3); strict clients refuse further keys. */
export const rankingRowSchema = z.strictObject({
  app_id: z.bigint(),
  app_name: z.string(),
  rank: z.bigint(),
  total_requests: z.bigint(),
  total_tokens: z.string().regex(/^\d+$/),
})
export type RankingRow = z.infer<typeof rankingRowSchema>

/** The `meta` of a rankings reply (CONTRACT 4.3). */
export const rankingMetaSchema = z.strictObject({
  as_of: z.iso.datetime({ precision: 0 }),
  start_date: daySchema,
  end_date: daySchema,
  version: z.literal(DATASET_VERSION),
})
export type RankingMeta = z.infer<typeof rankingMetaSchema>

/** What USAGE_SOURCE must look like, for messages. */
const CLICKHOUSE_FORM =
  'clickhouse://user:password@host:port/database?table=usage&cluster=NAME (port of the HTTP interface; tls=1 for https)'

/** The table of raw usage on a ClickHouse cluster, and how it is reached. */
export type ClickHouseAddress = {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string
  readonly user: string
  readonly password: string
  readonly database: string
  readonly table: string
  /** Set where the table is asked on each shard of a cluster, or the cluster's own name is not told by the table. */
  readonly cluster: string | undefined
}

/** Names that need no quotes in SQL; nothing else is ever put into a statement. */
const clickHouseName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/)

const addressSchema = z.object({
  protocol: z.literal('clickhouse:'),
  host: z.string().min(1),
  user: z.string(),
  password: z.string(),
  database: clickHouseName,
  parameters: z.strictObject({
    table: clickHouseName,
    cluster: clickHouseName.optional(),
    tls: z.enum(['0', '1']).optional(),
  }),
})

const CLICKHOUSE_PORT = 8123

/** The parts of an address in USAGE_SOURCE; undefined for any other text. */
export function parseClickHouseAddress(address: string): ClickHouseAddress | undefined {
  const url = URL.parse(address)
  if (url === null) return undefined
  const parts = addressSchema.safeParse({
    protocol: url.protocol,
    host: url.hostname,
    user: percentDecoded(url.username),
    password: percentDecoded(url.password),
    database: url.pathname.slice(1),
    parameters: Object.fromEntries(url.searchParams),
  })
  if (!parts.success) return undefined
  const { host, user, password, database, parameters } = parts.data
  const scheme = parameters.tls === '1' ? 'https' : 'http'
  return {
    url: `${scheme}://${host}:${url.port || CLICKHOUSE_PORT}`,
    user,
    password,
    database,
    table: parameters.table,
    cluster: parameters.cluster,
  }
}

/** Undefined where a `%` begins no byte: in a password it must be written as %25. */
function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const ORIGIN_EXPECTED = 'Expected an origin such as https://example.com, without a path'

/** PUBLIC_URL, without a slash at its end: every path of the service begins right behind it. */
export const publicUrlSchema = z
  .url({ protocol: /^https?$/, error: ORIGIN_EXPECTED })
  .transform((url) => new URL(url))
  .refine(({ href, origin }) => href === `${origin}/`, ORIGIN_EXPECTED)
  .transform(({ origin }) => origin)

/** The settings that say where raw usage is counted: chat inserts its records where the pipeline counts them. */
export const usageSourceSettings = {
  USAGE_SOURCE: z
    .string()
    .refine((address) => address === 'files' || parseClickHouseAddress(address) !== undefined, {
      error: `Expected files, or ${CLICKHOUSE_FORM}`,
    })
    .default('files')
    .describe('Where raw usage is counted: the files of the drop folder, or a ClickHouse cluster.'),
  USAGE_SOURCE_USER: z.string().optional().describe('User of the cluster, where USAGE_SOURCE names none.'),
  USAGE_SOURCE_PASSWORD: z
    .string()
    .optional()
    .describe('Password of that user, where USAGE_SOURCE has none.'),
} as const

/** Makes DATA_DIR, with the folders above it. */
export function makeDataFolder(path: string): void {
  // Where the system makes no folders, as in /proc, Node's recursive way never ends: it is for a folder that is there.
  if (existsSync(path)) return void mkdirSync(path, { recursive: true })
  makeDataFolder(dirname(path))
  try {
    mkdirSync(path)
  } catch (error) {
    // Another process may have been quicker.
    if (!existsSync(path)) throw error
  }
}

/** What a table of settings says in a program's help: a line for each, with its default where it has one. */
export function settingsHelp(
  settings: Readonly<Record<string, z.ZodType<string | number | undefined>>>,
): string {
  const lines = Object.entries(settings).map(([name, setting]) => {
    const { data: fallback } = setting.safeParse(undefined)
    const end = fallback === undefined ? '' : ` Default: ${fallback}.`
    return `  ${name.padEnd(23)}${setting.description ?? ''}${end}`
  })
  return `Settings (environment):\n${lines.join('\n')}`
}

/** The cluster of these settings, its address completed from those that keep credentials out of it. */
export function clusterOf(settings: {
  readonly USAGE_SOURCE: string
  readonly USAGE_SOURCE_USER?: string | undefined
  readonly USAGE_SOURCE_PASSWORD?: string | undefined
}): ClickHouseAddress | undefined {
  const address = parseClickHouseAddress(settings.USAGE_SOURCE)
  return (
    address && {
      ...address,
      user: address.user || (settings.USAGE_SOURCE_USER ?? 'default'),
      password: address.password || (settings.USAGE_SOURCE_PASSWORD ?? ''),
    }
  )
}
