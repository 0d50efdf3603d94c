import type { RankingsQuery } from '../../datasets/rankings/query.ts'
import type { ViewContext } from '../views.ts'
import type { PageData } from './page-data.ts'
import type { PageLinks } from './page-links.ts'
import type { PageParameters } from './page-query.ts'

/** What the page of a ranking is made of. */
export interface PageView extends ViewContext {
  readonly query: RankingsQuery
  readonly asked: PageParameters
  readonly data: PageData
  readonly links: PageLinks
  /** BibTeX of the snapshot, where its metadata has it. */
  readonly bibtex: string | undefined
}
