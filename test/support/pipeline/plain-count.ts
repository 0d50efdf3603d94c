/**
 * A second independent count of usage: counts rows in memory in plain loops, from data/README.md alone. It shares no code
 * with the pipeline or the oracle.
 */
import { createHash } from 'node:crypto'

/** Time, app (id or text), tokens, requests and request_id of a row; a broken one has a negative count. */
export type PlainRow = {
  /** ISO 8601 with nine decimals, so that texts compare like instants. */
  readonly ts: string
  readonly app: number | string
  readonly prompt: bigint | null
  readonly completion: bigint | null
  readonly requests: bigint
  readonly id: string
}

export type PlainApp = {
  readonly name: string
  readonly address?: string | undefined
  readonly visibility: string
  readonly alias?: number | undefined
}

type Figures = { requests: bigint; prompt: bigint; completion: bigint }
type CountedDay = {
  readonly apps: Map<number, Figures>
  rejected: number
  duplicates: number
  conflicts: number
}

/** The id of an address or a name; 0 if it identifies no app. */
function idOfText(text: string): number {
  const identity = identityOf(text)
  if (identity === '') return 0
  return (
    1_000_000_000 + Number(BigInt(`0x${createHash('sha256').update(identity).digest('hex').slice(0, 13)}`))
  )
}

function identityOf(text: string): string {
  if (!/^https?:/.test(text)) return text.trim() === '' ? '' : `local:${text.trim().toLowerCase()}`
  // Many apps share such an address.
  if (/^https?:\/\/localhost/.test(text)) return ''
  return text.replace(/^https?:\/\/(?:www\.)?/, '').replace(/\/$/, '')
}

/** The totals of a day's rows, by the app that each names. */
export function countPlainly(rows: readonly PlainRow[]): CountedDay {
  const counted: CountedDay = { apps: new Map(), rejected: 0, duplicates: 0, conflicts: 0 }
  const kept = new Map<string, PlainRow[]>()
  let unnamed = 0
  for (const row of rows) {
    if ((row.prompt ?? 0n) < 0n) counted.rejected += 1
    else {
      const key = row.id === '' ? `without ${(unnamed += 1)}` : `id ${row.id}`
      kept.set(key, [...(kept.get(key) ?? []), row])
    }
  }
  for (const same of kept.values()) {
    const [winner, ...others] = same.toSorted(newestFirst)
    if (winner === undefined) continue
    counted.duplicates += others.length
    counted.conflicts += others.filter((other) => saying(other) !== saying(winner)).length
    add(counted.apps, appOf(winner), winner)
  }
  return counted
}

function appOf({ app }: PlainRow): number {
  return typeof app === 'number' ? app : idOfText(app)
}

function saying(row: PlainRow): string {
  return [appOf(row), row.prompt, row.completion].join(' ')
}

function newestFirst(left: PlainRow, right: PlainRow): number {
  // Times count by microseconds.
  const [one, other] = [left.ts.slice(0, 26), right.ts.slice(0, 26)]
  if (one !== other) return one < other ? 1 : -1
  const pairs = [
    [appOf(left), appOf(right)],
    [left.prompt ?? -1n, right.prompt ?? -1n],
    [left.completion ?? -1n, right.completion ?? -1n],
    [left.requests, right.requests],
  ] as const
  for (const [value, against] of pairs) if (value !== against) return value < against ? 1 : -1
  return 0
}

function add(apps: Map<number, Figures>, app: number, { requests, prompt, completion }: PlainRow): void {
  const sum = apps.get(app) ?? { requests: 0n, prompt: 0n, completion: 0n }
  sum.requests += requests
  sum.prompt += prompt ?? 0n
  sum.completion += completion ?? 0n
  apps.set(app, sum)
}

/** Published app for the usage of each id; undefined if it is not published. */
export function publishedApps(
  ids: Iterable<number>,
  registry: ReadonlyMap<number, PlainApp>,
  texts: readonly string[],
): ReadonlyMap<number, number | undefined> {
  const textsById = Map.groupBy(texts, idOfText)
  return new Map([...new Set(ids)].map((id) => [id, publishedApp(id, registry, textsById.get(id) ?? [])]))
}

/** The published app for the usage of an id; undefined if there is none. Unregistered named apps are new. */
function publishedApp(
  id: number,
  registry: ReadonlyMap<number, PlainApp>,
  texts: readonly string[],
): number | undefined {
  let at = registeredApp(id, registry, texts)
  for (let alias = registry.get(at)?.alias; alias !== undefined; alias = registry.get(at)?.alias) at = alias
  const visibility = registry.get(at)?.visibility ?? (at >= 1_000_000_000 ? 'public' : 'unknown')
  return visibility === 'public' ? at : undefined
}

/** The registered app with one of these texts as its name or address. */
function registeredApp(
  id: number,
  registry: ReadonlyMap<number, PlainApp>,
  texts: readonly string[],
): number {
  const identities = texts.map(identityOf)
  for (const [owner, { name, address = '' }] of registry) {
    if (identities.includes(`local:${name.toLowerCase()}`)) return owner
    if (address !== '' && identities.includes(identityOf(address))) return owner
  }
  return id
}
