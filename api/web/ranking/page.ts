/** The page of the ranking (CONTRACT 4.6), from top to bottom. */
import { inWords } from '../days.ts'
import { renderDocument } from '../document.ts'
import { html } from '../html.ts'
import { provenance } from '../provenance.ts'
import { tabs } from '../tabs.ts'
import { chart } from './chart.ts'
import { downloads } from './downloads.ts'
import { filters, header, search, snapshotPicker } from './controls.ts'
import type { PageView } from './page-view.ts'
import { rankingTable } from './ranking-table.ts'
import { rankingTitle } from './title.ts'

/** The whole document; `structuredData` is the schema.org description of the dataset. */
export function renderPage(view: PageView, structuredData: object | undefined): string {
  const { asked, query, snapshot, links, origin } = view
  const title = rankingTitle(query)
  return renderDocument({
    title: `${title}, ${inWords(query)}`,
    description: `Apps ranked by their use of large language models. ${snapshot.attribution}`,
    skipTo: { id: 'ranking', label: 'Skip to the ranking' },
    header: header(view),
    main: html`${tabs('Apps', asked.parameters.as_of)}
      <div class="tools">${snapshotPicker(view)} ${search(view)}</div>
      ${filters(view)} ${chart(view)} ${provenance(snapshot)}
      <section id="ranking" aria-label="${title}">${rankingTable(view)}</section>
      ${downloads(view)}`,
    attribution: snapshot.attribution,
    structuredData,
    picture: `${origin}${links.card}`,
  })
}
