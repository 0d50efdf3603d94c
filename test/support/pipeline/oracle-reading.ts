/**
 * An independent reading of the raw folder: reads CSV and NDJSON and counts each app's days in the most naive way, from
 * CONTRACT 7 and data/README.md alone. It shares no code with the pipeline on purpose; even the floor date is repeated.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** The first day that counts. */
export const FLOOR = '2025-01-01'

export interface App {
  readonly app_name: string
  readonly visibility: string
  readonly subcategories: readonly string[]
  readonly alias_of: bigint | null
}

interface Usage {
  /** Microseconds since 1970. */
  readonly ts: number
  readonly app_id: bigint
  readonly prompt_tokens: bigint
  readonly completion_tokens: bigint
  readonly requests: bigint
  readonly request_id: string | null
}

/** A rejected row; `field` is its first invalid field, or `line` for a broken line. */
interface Reject {
  readonly day: string
  readonly file: string
  /** Line of the file, from 1. */
  readonly line: bigint
  readonly field: string
}

export interface Volume {
  readonly requests: bigint
  readonly prompt_tokens: bigint
  readonly completion_tokens: bigint
}

/** The contents of the raw folder, including private apps: the public tables follow from it. */
export interface Dataset {
  readonly registry: ReadonlyMap<bigint, App>
  /** Day, then canonical app. */
  readonly days: ReadonlyMap<string, ReadonlyMap<bigint, Volume>>
  readonly rejects: readonly Reject[]
  readonly dataThrough: string
}

/** Reads a raw folder (CONTRACT 7) as a run at `asOf` does. */
export function computeDataset(raw: string, asOf: string): Dataset {
  const registry = readRegistry(join(raw, 'apps'))
  const rejects: Reject[] = []
  const days = new Map<string, Map<bigint, Volume>>()
  for (const folder of visibleNames(join(raw, 'usage'))) {
    const day = folder.replace('date=', '')
    if (day < FLOOR || day >= asOf.slice(0, 10)) continue
    const rows = visibleNames(join(raw, 'usage', folder)).flatMap((file) =>
      readUsage(join(raw, 'usage', folder, file), day, rejects),
    )
    if (rows.length > 0) days.set(day, sumByApp(withoutDuplicates(rows), registry))
  }
  return { registry: registry.apps, days, rejects, dataThrough: [...days.keys()].toSorted().at(-1) ?? '' }
}

interface Registry {
  readonly apps: Map<bigint, App>
  /** The registered app by the id of its name, and of its address. */
  readonly named: Map<bigint, bigint>
}

function readRegistry(folder: string): Registry {
  const newest = new Map<bigint, { readonly record: Fields; readonly updated: number }>()
  for (const file of visibleNames(folder)) {
    for (const record of readRecords(join(folder, file))) {
      if (record === null) throw new Error(`${file}: the registry has a line that cannot be read`)
      const updated = Date.parse(text(record['updated_at']))
      const id = BigInt(text(record['app_id']))
      // On a tie the later file and row count.
      if (updated >= (newest.get(id)?.updated ?? -Infinity)) newest.set(id, { record, updated })
    }
  }
  const named = new Map<bigint, bigint>()
  for (const [id, { record }] of newest) {
    for (const word of ['app_name', 'app'].map((column) => idOf(text(record[column])))) {
      if (word !== 0n && !named.has(word)) named.set(word, id)
    }
  }
  const apps = [...newest].map(([id, { record }]): [bigint, App] => [
    id,
    {
      app_name: text(record['app_name']),
      visibility: text(record['visibility']),
      subcategories: tags(record['subcategories']),
      alias_of: aliasOf(text(record['alias_of']), named),
    },
  ])
  return { apps: new Map(apps), named }
}

/** The target of an alias: an id, a name or an address. */
function aliasOf(target: string, named: ReadonlyMap<bigint, bigint>): bigint | null {
  if (target === '') return null
  return /^\d+$/.test(target) ? BigInt(target) : (named.get(idOf(target)) ?? idOf(target))
}

/** Ids of named apps begin here. */
const NAMED = 1_000_000_000n

/** The id of an address or a name; 0 if it identifies no app. */
function idOf(word: string): bigint {
  const identity = identityOf(word)
  if (identity === '') return 0n
  return NAMED + BigInt(`0x${createHash('sha256').update(identity).digest('hex').slice(0, 13)}`)
}

function identityOf(word: string): string {
  if (!/^https?:/.test(word)) return word.trim() === '' ? '' : `local:${word.trim().toLowerCase()}`
  // Many apps share such an address.
  if (/^https?:\/\/localhost/.test(word)) return ''
  return word.replace(/^https?:\/\/(?:www\.)?/, '').replace(/\/$/, '')
}

function tags(value: unknown): string[] {
  return Array.isArray(value) ? value.map(text) : text(value).split('|').filter(Boolean)
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function canonical(id: bigint, { apps, named }: Registry): bigint {
  const app = apps.has(id) ? id : (named.get(id) ?? id)
  const next = apps.get(app)?.alias_of ?? null
  return next === null ? app : canonical(next, { apps, named })
}

function readUsage(path: string, day: string, rejects: Reject[]): Usage[] {
  const firstLine = path.endsWith('.csv') ? 2 : 1
  return readRecords(path).flatMap((record, index) => {
    const usage = record === null ? 'line' : toUsage(record, day)
    if (typeof usage !== 'string') return usage
    rejects.push({ day, file: basename(path), line: BigInt(firstLine + index), field: usage })
    return []
  })
}

/** The row, or the name of its first invalid field. */
function toUsage(record: Fields, day: string): Usage | string {
  const ts = instant(record['ts'])
  if (ts === null || new Date(ts / 1000).toISOString().slice(0, 10) !== day) return 'ts'
  const app_id = 'app' in record ? idOf(text(record['app'])) : whole(record['app_id'])
  if (typeof app_id !== 'bigint') return 'app_id'
  const tokens = tokensOf(record)
  if (typeof tokens === 'string') return tokens
  const requests = whole(record['requests'] ?? null)
  if (requests === undefined) return 'requests'
  return { ts, app_id, ...tokens, requests: requests ?? 1n, request_id: requestId(record['request_id']) }
}

/** Both token counts, or the name of the invalid one; both may be null, but not one alone. */
function tokensOf(record: Fields) {
  const prompt = whole(record['prompt_tokens'])
  const completion = whole(record['completion_tokens'])
  if (prompt === null && completion === null) return { prompt_tokens: 0n, completion_tokens: 0n }
  if (typeof prompt !== 'bigint') return 'prompt_tokens'
  if (typeof completion !== 'bigint') return 'completion_tokens'
  return { prompt_tokens: prompt, completion_tokens: completion }
}

function requestId(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Microseconds since 1970; a time without a zone is UTC. */
function instant(value: unknown): number | null {
  if (typeof value !== 'string') return null
  const [, date, time, fraction = '', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(value) ?? []
  const parsed = Date.parse(`${date}T${time}${zone}`)
  return Number.isNaN(parsed) ? null : parsed * 1000 + Number(fraction.slice(0, 6).padEnd(6, '0'))
}

/** A whole number of 0 or more; null for null; undefined for anything else. */
function whole(value: unknown): bigint | null | undefined {
  if (value === null) return null
  const digits = typeof value === 'string' ? /^(\d+)(?:\.0+)?$/.exec(value)?.[1] : undefined
  return digits === undefined ? undefined : BigInt(digits)
}

function withoutDuplicates(rows: readonly Usage[]): Usage[] {
  const single = rows.filter((row) => row.request_id === null)
  const byId = Map.groupBy(
    rows.filter((row) => row.request_id !== null),
    (row) => row.request_id,
  )
  return [...single, ...[...byId.values()].flatMap((same) => same.toSorted(newestFirst).slice(0, 1))]
}

function newestFirst(left: Usage, right: Usage): number {
  return (
    right.ts - left.ts ||
    ascending(right.app_id, left.app_id) ||
    ascending(right.prompt_tokens, left.prompt_tokens) ||
    ascending(right.completion_tokens, left.completion_tokens) ||
    ascending(right.requests, left.requests)
  )
}

/** The volumes of a day; an app that usage names is registered, if it is not yet. */
function sumByApp(rows: readonly Usage[], registry: Registry): Map<bigint, Volume> {
  const byApp = Map.groupBy(rows, (row) => canonical(row.app_id, registry))
  for (const app of byApp.keys()) {
    const isNew = app >= NAMED && !registry.apps.has(app)
    const made = { app_name: '', visibility: 'public', subcategories: [], alias_of: null }
    if (isNew) registry.apps.set(app, made)
  }
  return new Map(
    [...byApp].map(([app, own]) => [
      app,
      {
        requests: sum(own, (row) => row.requests),
        prompt_tokens: sum(own, (row) => row.prompt_tokens),
        completion_tokens: sum(own, (row) => row.completion_tokens),
      },
    ]),
  )
}

type Fields = Readonly<Record<string, unknown>>

/** The records of a text file; null for a malformed line. Numbers are their digits. */
function readRecords(path: string): (Fields | null)[] {
  const content = readFileSync(path, 'utf8')
  if (path.endsWith('.csv')) return parseCsv(content)
  if (path.endsWith('.ndjson')) return content.trimEnd().split('\n').map(parseJsonLine)
  throw new Error(`The oracle reads .csv and .ndjson, not ${path}`)
}

/** The records of a CSV text; an empty cell is null, and so is a line with too few or too many cells. */
export function parseCsv(content: string): (Readonly<Record<string, string | null>> | null)[] {
  const [header = [], ...lines] = content.trimEnd().split('\n').map(parseCsvLine)
  return lines.map((cells) =>
    cells.length === header.length
      ? Object.fromEntries(header.map((column, index) => [column, cells[index] || null]))
      : null,
  )
}

function parseCsvLine(line: string): string[] {
  return [...`,${line}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, inQuotes, plain]) => inQuotes?.replaceAll('""', '"') ?? plain ?? '',
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

/** Sorted file and folder names, except names that begin with `.` or `_`. */
function visibleNames(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => !/^[._]/.test(name))
    .toSorted()
}

export function ascending(left: bigint, right: bigint): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}

export function sum<Item>(items: readonly Item[], amountOf: (item: Item) => bigint): bigint {
  return items.reduce((total, item) => total + amountOf(item), 0n)
}
