import type { RankingsQuery } from '../../datasets/rankings/query.ts'

/** What a list is called: `Popular coding apps`. */
export function rankingTitle({ sort, category, subcategory }: RankingsQuery): string {
  const subject = subcategory ?? category
  return `${sort === 'popular' ? 'Popular' : 'Trending'} ${subject === null ? '' : `${subject} `}apps`
}
