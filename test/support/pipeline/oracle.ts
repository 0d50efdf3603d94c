/**
 * An independent computation of the public tables: in the most naive way, from CONTRACT 4.2 to 4.4 alone. It shares no code
 * with the pipeline on purpose; even the taxonomy is repeated.
 */
import { ascending, FLOOR, sum, type App, type Dataset, type Volume } from './oracle-reading.ts'

const TAXONOMY: Readonly<Record<string, readonly string[]>> = {
  coding: ['cli-agent', 'ide-extension', 'cloud-agent', 'programming-app', 'native-app-builder'],
  creative: ['creative-writing', 'video-gen', 'image-gen', 'audio-gen'],
  productivity: ['writing-assistant', 'general-chat', 'personal-agent', 'legal'],
  entertainment: ['roleplay', 'game'],
}

/** Every filter of the rankings: none, each category, each subcategory with its category. */
export const FILTERS: readonly Filter[] = [
  { category: null, subcategory: null },
  ...Object.entries(TAXONOMY).flatMap(([category, subcategories]) =>
    [null, ...subcategories].map((subcategory) => ({ category, subcategory })),
  ),
]

export interface Filter {
  readonly category: string | null
  readonly subcategory: string | null
}

/** One list of the rankings: order, window (both days inclusive) and filter. */
export interface Question extends Filter {
  readonly sort: 'popular' | 'trending'
  readonly start: string
  readonly end: string
}

export interface Rank {
  readonly rank: bigint
  readonly app_id: bigint
  readonly app_name: string
  readonly total_requests: bigint
  readonly total_tokens: bigint
  /** Rounded down; only in trending. */
  readonly excess_tokens: bigint | null
}

/** The table `apps`: public apps that are no alias, by id. */
export function publicApps(dataset: Dataset): (App & { readonly app_id: bigint })[] {
  return [...dataset.registry]
    .filter(([, app]) => app.visibility === 'public' && app.alias_of === null)
    .map(([app_id, app]) => ({ app_id, ...app, subcategories: app.subcategories.toSorted() }))
    .toSorted((left, right) => ascending(left.app_id, right.app_id))
}

/** The table `app_daily`, by day and app. */
export function publicDays(dataset: Dataset): (Volume & { readonly day: string; readonly app_id: bigint })[] {
  const published = new Set(publicApps(dataset).map((app) => app.app_id))
  return [...dataset.days]
    .toSorted(([left], [right]) => left.localeCompare(right))
    .flatMap(([day, apps]) =>
      [...apps]
        .filter(([app_id]) => published.has(app_id))
        .toSorted(([left], [right]) => ascending(left, right))
        .map(([app_id, volume]) => ({ day, app_id, ...volume })),
    )
}

/** Input for telling corrected figures from a changed registry. */
export interface Correction {
  /** The dataset of the previous snapshot. */
  readonly before: Dataset
  /** The present usage with the previous registry. */
  readonly recounted: Dataset
}

/** The table `coverage`; only changed figures make a day restated, not the registry. */
export function coverage(dataset: Dataset, correction?: Correction) {
  const published = publicDays(dataset)
  const changed = correction && restatements(correction.recounted, correction.before)
  const restated = new Set(changed?.map((row) => row.day))
  return daysBetween(FLOOR, dataset.dataThrough).map((day) => {
    const volumes = published.filter((row) => row.day === day)
    return {
      day,
      status: status(dataset, day, restated),
      total_requests: sum(volumes, (row) => row.requests),
      total_tokens: sum(volumes, (row) => row.prompt_tokens + row.completion_tokens),
    }
  })
}

/** A day with rejected rows is partial even if it was restated too; the table restatements shows the latter. */
function status(dataset: Dataset, day: string, restated: ReadonlySet<string>): string {
  if (!dataset.days.has(day)) return 'missing'
  if (dataset.rejects.some((reject) => reject.day === day)) return 'partial'
  return restated.has(day) ? 'restated' : 'complete'
}

/** The days of `before` with other figures in the present dataset, with both figures. */
export function restatements(dataset: Dataset, before: Dataset) {
  return daysBetween(FLOOR, before.dataThrough).flatMap((day) => {
    const old = new Map(publicDays(before).flatMap((row) => (row.day === day ? [[row.app_id, row]] : [])))
    const now = new Map(publicDays(dataset).flatMap((row) => (row.day === day ? [[row.app_id, row]] : [])))
    const changed = [...new Set([...old.keys(), ...now.keys()])].filter(
      (app) => figures(old.get(app)) !== figures(now.get(app)),
    )
    if (changed.length === 0) return []
    return {
      day,
      apps_changed: BigInt(changed.length),
      requests_before: sum([...old.values()], (row) => row.requests),
      requests_after: sum([...now.values()], (row) => row.requests),
      tokens_before: sum([...old.values()], (row) => row.prompt_tokens + row.completion_tokens),
      tokens_after: sum([...now.values()], (row) => row.prompt_tokens + row.completion_tokens),
    }
  })
}

function figures(row: Volume | undefined): string {
  return row === undefined ? 'none' : [row.requests, row.prompt_tokens, row.completion_tokens].join()
}

/** The whole ranking of a list, by the rules of CONTRACT 4.2. */
export function ranking(dataset: Dataset, question: Question): Rank[] {
  const { start, end } = question
  const length = daysBetween(start, end).length
  const published = publicDays(dataset)
  const inside = published.filter((row) => row.day >= start && row.day <= end)
  const earlier = published.filter((row) => row.day >= shifted(start, -3 * length) && row.day < start)
  return publicApps(dataset)
    .filter((app) => passes(app, question))
    .map((app) => {
      const own = inside.filter((row) => row.app_id === app.app_id)
      const total_tokens = sum(own, (row) => row.prompt_tokens + row.completion_tokens)
      const tokensBefore = sum(
        earlier.filter((row) => row.app_id === app.app_id),
        (row) => row.prompt_tokens + row.completion_tokens,
      )
      const tripleExcess = 3n * total_tokens - tokensBefore
      return { app, total_requests: sum(own, (row) => row.requests), total_tokens, tripleExcess }
    })
    .filter((row) => row.total_requests > 0n)
    .filter((row) => question.sort === 'popular' || row.tripleExcess > 0n)
    .toSorted(
      (left, right) =>
        (question.sort === 'trending' ? ascending(right.tripleExcess, left.tripleExcess) : 0) ||
        ascending(right.total_tokens, left.total_tokens) ||
        ascending(left.app.app_id, right.app.app_id),
    )
    .map(({ app, total_requests, total_tokens, tripleExcess }, index) => ({
      rank: BigInt(index + 1),
      app_id: app.app_id,
      app_name: app.app_name,
      total_requests,
      total_tokens,
      excess_tokens: question.sort === 'trending' ? tripleExcess / 3n : null,
    }))
}

function passes(app: App, { category, subcategory }: Filter): boolean {
  if (subcategory !== null) return app.subcategories.includes(subcategory)
  if (category !== null) return app.subcategories.some((tag) => TAXONOMY[category]?.includes(tag))
  return true
}

function shifted(day: string, days: number): string {
  return new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10)
}

/** All days from `start` to `end`, both inclusive. */
function daysBetween(start: string, end: string): string[] {
  return start > end ? [] : [start, ...daysBetween(shifted(start, 1), end)]
}
