import type { ViewContext } from '../views.ts'
import type { PageData, PageRanking } from './page-data.ts'
import type { PageLinks } from './page-links.ts'
import type { PageParameters } from './page-query.ts'

/** The inputs of a ranking page. */
export interface PageView extends ViewContext {
  readonly query: PageRanking
  readonly asked: PageParameters
  readonly data: PageData
  readonly links: PageLinks
  /** BibTeX of the snapshot, if its metadata has it. */
  readonly bibtex: string | undefined
}
