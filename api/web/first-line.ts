/** The first line of a page: its title, the age of its data, and the search for apps. */
import { readFileSync } from 'node:fs'
import { APPS_PATH } from '../paths.ts'
import { address } from './addresses.ts'
import { html, type Html } from './html.ts'
import type { ViewContext } from './views.ts'

/** The credit line of the bundled sample. */
const SAMPLE = readFileSync(new URL('../../data/sample/ATTRIBUTION', import.meta.url), 'utf8').trim()

/** The first line of a page: its title, the age of its data, and the search for apps. */
export function firstLine(title: string, context: ViewContext, { isList = false } = {}): Html {
  const { snapshot, isCurrent } = context
  const { dataThrough, asOf } = snapshot
  const home = address('/', { as_of: isCurrent ? undefined : asOf })
  return html`<h1><bdi>${title}</bdi></h1>
    <p class="fresh">
      ${isList ? null : html`<a href="${home}">Rankings</a> · `}Data through <time>${dataThrough}</time>,
      snapshot <time datetime="${asOf}">${asOf.slice(0, 16).replace('T', ' ')} UTC</time> ${badges(context)}
    </p>
    <form class="search" action="${APPS_PATH}" role="search">
      <input
        type="search"
        name="q"
        required
        maxlength="100"
        autocomplete="off"
        placeholder="Find an app ( / )"
        aria-label="Find an app"
      />
      ${isCurrent ? null : html`<input type="hidden" name="as_of" value="${asOf}" />`}
    </form>`
}

function badges({ snapshot, isCurrent, age }: ViewContext): Html | null {
  const isSample = snapshot.sources?.includes(SAMPLE) === true
  const ends = age === 'ended' ? `ends ${snapshot.dataThrough}` : 'a new snapshot is overdue'
  const texts = [
    isSample ? 'sample data' : undefined,
    isCurrent ? undefined : 'an earlier snapshot',
    isCurrent && age !== 'current' ? ends : undefined,
  ].filter((text) => text !== undefined)
  return texts.length === 0 ? null : html`<span class="badge">${texts.join(', ')}</span>`
}
