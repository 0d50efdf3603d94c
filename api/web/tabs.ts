/** The rankings that the pages show, as tabs. */
import { MODELS_PAGE_PATH } from '../paths.ts'
import { address } from './addresses.ts'
import { html, type Html } from './html.ts'

const TABS = [
  { name: 'Apps', path: '/' },
  { name: 'Models', path: MODELS_PAGE_PATH },
] as const

/**
 * The tabs; on pages beside the rankings they are the way to them.
 * @param shown the tab that the page is.
 * @param asOf set where a snapshot is pinned: the other tab shows the same one.
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
