/**
 * An independent computation of apps, days and rankings from a raw folder, in the most naive way: from CONTRACT 4.2 to 4.4
 * and 7 and data/README.md alone. It shares no code with the pipeline on purpose; even floor and taxonomy are repeated. The
 * rows of a table are texts, as a query of the tests gives them.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parse } from 'csv-parse/sync'
import type { TextRow } from './nightly.ts'

/** The first day that counts. */
const FLOOR = '2025-01-01'
const DAY_MS = 86_400_000
/** Ids of named apps begin here. */
const NAMED = 1_000_000_000n

const TAXONOMY: Readonly<Record<string, readonly string[]>> = {
  coding: ['cli-agent', 'ide-extension', 'cloud-agent', 'programming-app', 'native-app-builder'],
  creative: ['creative-writing', 'video-gen', 'image-gen', 'audio-gen'],
  productivity: ['writing-assistant', 'general-chat', 'personal-agent', 'legal'],
  entertainment: ['roleplay', 'game'],
}

type Filter = { readonly category: string | null; readonly subcategory: string | null }

/** Every filter of the rankings: none, each category, each subcategory with its category. */
export const FILTERS: readonly Filter[] = [
  { category: null, subcategory: null },
  ...Object.entries(TAXONOMY).flatMap(([category, subcategories]) =>
    [null, ...subcategories].map((subcategory) => ({ category, subcategory })),
  ),
]

/** One list of the rankings: order, window (both days inclusive) and filter. */
export type Question = Filter & {
  readonly sort: 'popular' | 'trending'
  readonly start: string
  readonly end: string
}

/** The query of the published macros for the same list, with the columns of `ranking`. */
export function rankingSql({ sort, start, end, category, subcategory }: Question): string {
  const literal = (word: string | null) => (word === null ? 'NULL' : `'${word}'`)
  const excess = sort === 'trending' ? '' : ', NULL AS excess_tokens'
  return `SELECT *${excess} FROM ${sort}(
    '${start}', '${end}', category := ${literal(category)}, subcategory := ${literal(subcategory)})`
}

type App = {
  readonly app_name: string
  readonly visibility: string
  readonly subcategories: readonly string[]
  readonly alias_of: bigint | null
}

/** What an app used on a day. */
type Volume = {
  readonly day: string
  readonly app_id: bigint
  readonly requests: bigint
  readonly prompt_tokens: bigint
  readonly completion_tokens: bigint
}

type Usage = Volume & {
  /** Microseconds since 1970. */
  readonly ts: bigint
  readonly request_id: string | null
}

/** A rejected row; `field` is its first invalid field, or `line` for a broken line. */
type Reject = {
  readonly day: string
  readonly file: string
  /** Line of the file, from 1. */
  readonly line: string
  readonly field: string
}

/** The contents of a raw folder, private apps included: the public tables follow from it. */
export type Dataset = {
  readonly apps: ReadonlyMap<bigint, App>
  /** By day and canonical app. */
  readonly days: readonly Volume[]
  readonly rejects: readonly Reject[]
}

/** Reads a raw folder (CONTRACT 7) as a run at `asOf` does. */
export function readDataset(raw: string, asOf: string): Dataset {
  const registry = readRegistry(join(raw, 'apps'))
  const rejects: Reject[] = []
  const days = visibleNames(join(raw, 'usage')).flatMap((folder) => {
    const day = folder.replace('date=', '')
    if (day < FLOOR || day >= asOf.slice(0, 10)) return []
    const files = visibleNames(join(raw, 'usage', folder)).map((name) => join(raw, 'usage', folder, name))
    const rows = withoutDuplicates(files.flatMap((file) => readUsage(file, day, rejects)))
    const byApp = Map.groupBy(rows, (row) => canonical(row.app_id, registry))
    return [...byApp]
      .map(([app_id, own]) => ({ day, app_id, ...total(own) }))
      .toSorted(by((row) => row.app_id))
  })
  // An app that usage names is registered, if it is not yet.
  const made = { app_name: '', visibility: 'public', subcategories: [], alias_of: null }
  const named = days.filter(({ app_id }) => app_id >= NAMED).map(({ app_id }) => [app_id, made] as const)
  const apps = new Map([...named, ...registry.apps])
  return { apps, days, rejects }
}

/** The table `apps`: public apps that are no alias, by id. */
export function appsTable(dataset: Dataset): TextRow[] {
  return publicApps(dataset).map(({ app_id, app_name, subcategories }) =>
    asText({ app_id, app_name, subcategories: subcategories.toSorted().join('|') }),
  )
}

/** The table `app_daily`, by day and app. */
export function appDaily(dataset: Dataset): TextRow[] {
  return publicDays(dataset).map(asText)
}

/** The whole ranking of a list, by the rules of CONTRACT 4.2; the excess is rounded down, and only in trending. */
export function ranking(dataset: Dataset, { sort, start, end, ...filter }: Question): TextRow[] {
  const length = (Date.parse(end) - Date.parse(start)) / DAY_MS + 1
  const byApp = Map.groupBy(publicDays(dataset), (row) => row.app_id)
  return publicApps(dataset)
    .filter((app) => passes(app, filter))
    .map(({ app_id, app_name }) => {
      const between = (from: string, to: string) => {
        const rows = byApp.get(app_id)?.filter((row) => row.day >= from && row.day <= to) ?? []
        const { requests, prompt_tokens, completion_tokens } = total(rows)
        return { requests, tokens: prompt_tokens + completion_tokens }
      }
      const { requests, tokens } = between(start, end)
      const tripleExcess = 3n * tokens - between(shifted(start, -3 * length), shifted(start, -1)).tokens
      return { app_id, app_name, requests, tokens, tripleExcess }
    })
    .filter((row) => row.requests > 0n && (sort === 'popular' || row.tripleExcess > 0n))
    .toSorted(
      by(
        (row) => (sort === 'trending' ? -row.tripleExcess : 0n),
        (row) => -row.tokens,
        (row) => row.app_id,
      ),
    )
    .map(({ app_id, app_name, requests, tokens, tripleExcess }, index) =>
      asText({
        rank: index + 1,
        app_id,
        app_name,
        total_requests: requests,
        total_tokens: tokens,
        excess_tokens: sort === 'trending' ? tripleExcess / 3n : null,
      }),
    )
}

function passes(app: App, { category, subcategory }: Filter): boolean {
  if (subcategory !== null) return app.subcategories.includes(subcategory)
  return category === null || app.subcategories.some((tag) => TAXONOMY[category]?.includes(tag))
}

function publicApps({ apps }: Dataset): (App & { readonly app_id: bigint })[] {
  return [...apps]
    .map(([app_id, app]) => ({ app_id, ...app }))
    .filter((app) => app.visibility === 'public' && app.alias_of === null)
    .toSorted(by((app) => app.app_id))
}

function publicDays(dataset: Dataset): Volume[] {
  const published = new Set(publicApps(dataset).map(({ app_id }) => app_id))
  return dataset.days.filter(({ app_id }) => published.has(app_id))
}

type Registry = {
  readonly apps: ReadonlyMap<bigint, App>
  /** The registered app by the id of its name, and of its address. */
  readonly named: ReadonlyMap<bigint, bigint>
}

function readRegistry(folder: string): Registry {
  const newest = new Map<bigint, Fields>()
  const updated = (record: Fields | undefined) => Date.parse(text(record?.['updated_at'])) || -Infinity
  for (const record of visibleNames(folder).flatMap((file) => readRecords(join(folder, file)))) {
    if (record === null) throw new Error(`${folder} has a line that cannot be read`)
    const id = BigInt(text(record['app_id']))
    // On a tie the later file and row count.
    if (updated(record) >= updated(newest.get(id))) newest.set(id, record)
  }
  const named = new Map<bigint, bigint>()
  for (const [id, record] of newest) {
    for (const word of ['app_name', 'app'].map((column) => idOf(text(record[column]))))
      if (word !== 0n && !named.has(word)) named.set(word, id)
  }
  /** The target of an alias: an id, a name or an address. */
  const target = (word: string) => (/^\d+$/.test(word) ? BigInt(word) : (named.get(idOf(word)) ?? idOf(word)))
  const apps = [...newest].map(([id, record]): [bigint, App] => {
    const { subcategories: tags, alias_of: alias } = record
    return [
      id,
      {
        app_name: text(record['app_name']),
        visibility: text(record['visibility']),
        subcategories: Array.isArray(tags) ? tags.map(text) : text(tags).split('|').filter(Boolean),
        alias_of: text(alias) === '' ? null : target(text(alias)),
      },
    ]
  })
  return { apps: new Map(apps), named }
}

function canonical(id: bigint, { apps, named }: Registry): bigint {
  const app = apps.has(id) ? id : (named.get(id) ?? id)
  const next = apps.get(app)?.alias_of ?? null
  return next === null ? app : canonical(next, { apps, named })
}

/** The id of an address or a name; 0 if it identifies no app, as the address of localhost, which many apps share. */
function idOf(word: string): bigint {
  if (word.trim() === '' || /^https?:\/\/localhost/.test(word)) return 0n
  const identity = /^https?:/.test(word)
    ? word.replace(/^https?:\/\/(?:www\.)?/, '').replace(/\/$/, '')
    : `local:${word.trim().toLowerCase()}`
  return NAMED + BigInt(`0x${createHash('sha256').update(identity).digest('hex').slice(0, 13)}`)
}

function readUsage(path: string, day: string, rejects: Reject[]): Usage[] {
  const firstLine = path.endsWith('.csv') ? 2 : 1
  return readRecords(path).flatMap((record, index) => {
    const usage = record === null ? 'line' : toUsage(record, day)
    if (typeof usage !== 'string') return usage
    rejects.push({ day, file: basename(path), line: String(firstLine + index), field: usage })
    return []
  })
}

/** The row, or the name of its first invalid field. */
function toUsage(record: Fields, day: string): Usage | string {
  const ts = instant(record['ts'])
  if (ts === null || new Date(Number(ts / 1000n)).toISOString().slice(0, 10) !== day) return 'ts'
  const app_id = 'app' in record ? idOf(text(record['app'])) : whole(record['app_id'])
  if (typeof app_id !== 'bigint') return 'app_id'
  const tokens = tokensOf(record)
  if (typeof tokens === 'string') return tokens
  const requests = whole(record['requests'] ?? null)
  if (requests === undefined) return 'requests'
  const request_id = text(record['request_id']) || null
  return { day, ts, app_id, ...tokens, requests: requests ?? 1n, request_id }
}

/** Both token counts, or the name of the invalid one; both may be null, but not one alone. */
function tokensOf(record: Fields) {
  const [prompt, completion] = [whole(record['prompt_tokens']), whole(record['completion_tokens'])]
  if (prompt === null && completion === null) return { prompt_tokens: 0n, completion_tokens: 0n }
  if (typeof prompt !== 'bigint') return 'prompt_tokens'
  if (typeof completion !== 'bigint') return 'completion_tokens'
  return { prompt_tokens: prompt, completion_tokens: completion }
}

/** Microseconds since 1970; a time without a zone is UTC, and a day is its start. */
function instant(value: unknown): bigint | null {
  const [, date, time = '00:00:00', fraction = '', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?)?$/.exec(text(value)) ?? []
  const parsed = Date.parse(`${date}T${time}${zone}`)
  return Number.isNaN(parsed) ? null : BigInt(parsed) * 1000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'))
}

/** A whole number of 0 or more; null for null; undefined for anything else. */
function whole(value: unknown): bigint | null | undefined {
  if (value === null) return null
  const digits = /^(\d+)(?:\.0+)?$/.exec(text(value))?.[1]
  return digits === undefined ? undefined : BigInt(digits)
}

/** Of the rows with one request_id the newest, then the larger one. */
function withoutDuplicates(rows: readonly Usage[]): Usage[] {
  const newest = by<Usage>(
    (row) => -row.ts,
    (row) => -row.app_id,
    (row) => -row.prompt_tokens,
    (row) => -row.completion_tokens,
    (row) => -row.requests,
  )
  const byId = Map.groupBy(rows, (row) => row.request_id)
  return [...byId].flatMap(([id, same]) => (id === null ? same : same.toSorted(newest).slice(0, 1)))
}

type Fields = Readonly<Record<string, unknown>>

/** The records of a CSV or NDJSON file, cells and numbers as texts; null for a malformed line. */
function readRecords(path: string): (Fields | null)[] {
  const content = readFileSync(path, 'utf8')
  if (path.endsWith('.csv')) return readCsv(content)
  return content.trimEnd().split('\n').map(parseJsonLine)
}

/** The records of a CSV text; an empty cell is null, and so is a line with too few or too many cells. */
function readCsv(content: string): (TextRow | null)[] {
  const [header = [], ...lines] = parse(content, { relax_column_count: true })
  return lines.map((cells) =>
    cells.length === header.length
      ? Object.fromEntries(header.map((column, index) => [column, cells[index] || null]))
      : null,
  )
}

function parseJsonLine(line: string): Fields | null {
  try {
    // Numbers as text: JavaScript numbers would round them past 2^53.
    const value: unknown = JSON.parse(line.replaceAll(/":\s*(-?\d[\d.]*)/g, '":"$1"'))
    return typeof value === 'object' && value !== null ? { ...value } : null
  } catch {
    return null
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Sorted file and folder names, except names that begin with `.` or `_`. */
function visibleNames(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => !/^[._]/.test(name))
  return names.toSorted()
}

function total(rows: readonly Volume[]) {
  const sum = (amountOf: (row: Volume) => bigint) => rows.reduce((all, row) => all + amountOf(row), 0n)
  return {
    requests: sum((row) => row.requests),
    prompt_tokens: sum((row) => row.prompt_tokens),
    completion_tokens: sum((row) => row.completion_tokens),
  }
}

/** Orders by the first key that differs, ascending. */
function by<Row>(...keys: readonly ((row: Row) => bigint)[]) {
  return (left: Row, right: Row): number => {
    const key = keys.find((keyOf) => keyOf(left) !== keyOf(right))
    if (key === undefined) return 0
    return key(left) < key(right) ? -1 : 1
  }
}

function asText(row: object): TextRow {
  const cells = Object.entries(row).map(([column, value]) => [column, value === null ? null : String(value)])
  return Object.fromEntries(cells)
}

function shifted(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)
}
