/** The rankings of the pages, as tabs. */
import { MODELS_PAGE_PATH } from '../paths.ts'
import { address } from './addresses.ts'
import { html, type Html } from './html.ts'

const TABS = [
  { name: 'Apps', path: '/' },
  { name: 'Models', path: MODELS_PAGE_PATH },
] as const

/**
 * The tabs; they also link from other pages to the rankings.
 * @param shown the selected tab.
 * @param asOf set for a pinned snapshot: the other tab keeps it.
 */
export function tabs(shown: (typeof TABS)[number]['name'] | undefined, asOf: string | undefined): Html {
  const to = (path: string) => address(path, { as_of: asOf })
  return html`<nav class="filters" aria-label="Rankings">
    <div role="group" aria-label="Ranking of">
      ${TABS.map(
        ({ name, path }) =>
          html`<a href="${to(path)}" ${name === shown ? html`aria-current="page"` : null}>${name}</a>`,
      )}
    </div>
  </nav>`
}
