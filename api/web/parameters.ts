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

const { start_date, end_date, limit, offset, as_of, subcategory } = PARAMETERS
const days = {
  schema: z.enum(WINDOWS.map(String)).transform(Number),
  allowed: `one of ${WINDOWS.join(', ')}, instead of start_date`,
}
const q = { schema: z.string().trim().max(100), allowed: 'a part of a name, at most 100 characters' }
const SHARED = { start_date, end_date, limit, offset, as_of, days, q } as const
// One field of a form has both, so that it works without a script.
const category = oneOf([...CATEGORIES, ...SUBCATEGORIES])

/** The parameters of each list. */
export const LISTS = {
  apps: {
    ...SHARED,
    sort: oneOf(['popular', 'trending', 'requests']),
    category,
    subcategory,
    apps: drawn(String.raw`\d{1,19}`),
  },
  models: { ...SHARED, sort: oneOf(['popular', 'requests']), models: drawn('[^,]{1,200}') },
} as const

/** Further parameters of the page. */
export const OF_THE_PAGE = { chart: oneOf(['stacked', 'lines']) } as const

/** Further parameters of the JSON. */
export const OF_THE_JSON = { series: { schema: z.literal('1'), allowed: '1' } } as const

export type ListParameters = Omit<Values<typeof LISTS.models>, 'sort'> &
  Values<typeof LISTS.apps & typeof OF_THE_PAGE & typeof OF_THE_JSON>

/** A list with every default applied. */
export type List = Omit<RankingsQuery, 'sort'> & {
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
 * @throws ApiError 400 for parameters that are valid alone, but not together.
 */
export function resolveList(subject: Subject, given: ListParameters, { dataThrough }: SnapshotFacts): List {
  const { category: either, sort: order = 'popular', q: name = '', ...rest } = given
  if (rest.days !== undefined && rest.start_date !== undefined) {
    throw invalidParameter('days', String(rest.days), days.allowed)
  }
  const group = CATEGORIES.find((each) => each === either)
  const tag = rest.subcategory ?? SUBCATEGORIES.find((each) => each === either)
  const parameters = { ...rest, ...(group && { category: group }), ...(tag && { subcategory: tag }) }
  const { sort: _sort, ...query } = resolveQuery(parameters, dataThrough)
  const measure = order === 'requests' ? 'requests' : 'tokens'
  const chosen = given[subject]
  return { ...query, subject, order, measure, q: name, drawn: chosen === NONE ? [] : chosen?.split(',') }
}
