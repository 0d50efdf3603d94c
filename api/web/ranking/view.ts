/** GET / (CONTRACT 4.6): the ranking as a page, from the same snapshot and the same code as the API. */
import type { SnapshotCatalogue } from '../../datasets/snapshots/catalogue.ts'
import { queryString } from '../../http/respond.ts'
import { HTML } from '../document.ts'
import type { View } from '../views.ts'
import { readPageData } from './page-data.ts'
import { pageLinks } from './page-links.ts'
import { parsePageParameters, resolvePage, type PageParameters } from './page-query.ts'
import { renderPage } from './page.ts'

/** The most frequent views, rendered before a snapshot is served. */
export const FIRST_LOOKS: readonly PageParameters[] = ['', 'sort=trending'].map(parsePageParameters)

export function rankingView(catalogue: SnapshotCatalogue): View<PageParameters> {
  return {
    name: 'ranking',
    contentType: HTML,
    read: (request) => parsePageParameters(queryString(request)),
    async make(context, asked) {
      const { snapshot } = context
      const query = resolvePage(asked, snapshot)
      const metadata = catalogue.metadata(snapshot.id)
      return renderPage(
        {
          ...context,
          query,
          asked,
          data: await readPageData(snapshot, query),
          links: pageLinks(asked),
          bibtex: metadata?.citeAs,
        },
        metadata?.structuredData,
      )
    },
  }
}
