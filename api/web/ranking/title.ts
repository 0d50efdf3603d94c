import type { RankingsQuery } from '../../datasets/rankings/query.ts'

/** The title of a list, such as `Popular coding apps`. */
export function rankingTitle({ sort, category, subcategory }: RankingsQuery): string {
  const subject = subcategory ?? category
  return `${sort === 'popular' ? 'Popular' : 'Trending'} ${subject === null ? '' : `${subject} `}apps`
}
