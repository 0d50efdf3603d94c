/** The parameters of the lists, `/` and `/models`, and of their files (CONTRACT 4.6): the API's, and a few for people. */
import { z } from 'zod'
import { CATEGORIES, SUBCATEGORIES } from '../../pipeline/contract/taxonomy.ts'
import { PARAMETERS, resolveQuery, type RankingsQuery } from '../datasets/rankings.ts'
import type { SnapshotFacts } from '../datasets/snapshots/facts.ts'
import { invalidParameter, oneOf, type Values } from '../http/query-parameters.ts'

/** What a list ranks. */
export type Subject = 'apps' | 'models'

/** Windows that move with the data, in days. */
export const WINDOWS = [1, 7, 30, 90, 365] as const

/** Series that the chart draws in colours of their own. */
export const DRAWN = 7

const NONE = 'none'
const drawn = (item: string) => ({
  schema: z.string().regex(new RegExp(`^(?:${NONE}|${item}(?:,${item}){0,${DRAWN - 1}})$`)),
  allowed: `up to ${DRAWN} of the list, separated by commas, or ${NONE}`,
})
const one = { schema: z.literal('1'), allowed: '1' } as const

const { start_date, end_date, limit, offset, as_of } = PARAMETERS
const days = {
  schema: z.enum(WINDOWS.map(String)).transform(Number),
  allowed: `one of ${WINDOWS.join(', ')}, instead of start_date`,
}
const q = { schema: z.string().max(100), allowed: 'a part of a name, at most 100 characters' }
const SHARED = { start_date, end_date, limit, offset, as_of, days, q } as const
const APPS = {
  ...SHARED,
  sort: oneOf(['popular', 'trending', 'requests']),
  // One field of a form has both, so that it works without a script.
  category: oneOf([...CATEGORIES, ...SUBCATEGORIES]),
  subcategory: PARAMETERS.subcategory,
  apps: drawn(String.raw`\d{1,19}`),
} as const
const MODELS = {
  ...SHARED,
  sort: oneOf(['popular', 'requests']),
  models: drawn('[^,]{1,200}'),
} as const

/** The parameters of each list. */
export const LISTS = { apps: APPS, models: MODELS } as const

/** Further parameters of the page; `dates` takes the dates where a form sends days too. */
export const OF_THE_PAGE = { chart: oneOf(['stacked', 'lines']), dates: one } as const

/** Further parameters of the JSON. */
export const OF_THE_JSON = { series: one } as const

export type ListParameters = Omit<Values<typeof MODELS>, 'sort'> &
  Values<typeof APPS & typeof OF_THE_PAGE & typeof OF_THE_JSON>

/** A list with every default applied. */
export interface List extends Omit<RankingsQuery, 'sort'> {
  readonly subject: Subject
  readonly order: 'popular' | 'trending' | 'requests'
  readonly measure: 'tokens' | 'requests'
  /** A part of the names; empty for all. */
  readonly q: string
  /** The drawn apps or models; undefined for the first of the list. */
  readonly drawn: readonly string[] | undefined
}

/**
 * Applies the defaults.
 * @throws {ApiError} 400 for parameters that are valid alone, but not together.
 */
export function resolveList(subject: Subject, given: ListParameters, { dataThrough }: SnapshotFacts): List {
  const { category: either, subcategory, sort: order = 'popular', q: name = '', ...rest } = given
  const group = CATEGORIES.find((each) => each === either)
  const tag = subcategory ?? SUBCATEGORIES.find((each) => each === either)
  if (given.days !== undefined && given.start_date !== undefined) {
    throw invalidParameter('days', String(given.days), days.allowed)
  }
  const parameters = { ...rest, ...(group && { category: group }), ...(tag && { subcategory: tag }) }
  const { sort: _sort, ...query } = resolveQuery(parameters, dataThrough)
  const chosen = given[subject]
  return {
    ...query,
    subject,
    order,
    measure: order === 'requests' ? 'requests' : 'tokens',
    q: name,
    drawn: chosen === NONE ? [] : chosen?.split(','),
  }
}
