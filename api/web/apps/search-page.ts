/** GET /apps?q=: apps by a part of their name. */
import { APPS_PATH } from '../../paths.ts'
import { address, snapshotField } from '../addresses.ts'
import { HTML, renderDocument } from '../document.ts'
import { html, isolated, type Html } from '../html.ts'
import { compact, counted, exact } from '../numbers.ts'
import { tabs } from '../tabs.ts'
import type { View } from '../views.ts'
import { findApps } from './app-data.ts'
import { readSearchRequest, type SearchRequest } from './parameters.ts'

export const searchView: View<SearchRequest> = {
  name: 'apps',
  contentType: HTML,
  read: readSearchRequest,
  async make({ snapshot }, { parameters: { q, as_of } }) {
    const found = q === undefined ? [] : await findApps(snapshot, q)
    return renderDocument({
      title: q === undefined ? 'Find an app' : `Apps named ${isolated(q)}`,
      description: 'Apps of the rankings by name.',
      skipTo: { id: 'found', label: 'Skip to the apps' },
      header: html`<header><h1>Find an app</h1></header>`,
      main: html`${tabs(undefined, as_of)}
        <form method="get" action="${APPS_PATH}" class="picker" role="search">
          <label for="q">Name</label>
          <input id="q" name="q" type="search" required maxlength="100" value="${q}" />
          ${snapshotField(as_of)}
          <button type="submit">Search</button>
        </form>
        <section id="found" aria-label="Apps">${q === undefined ? null : list(found, as_of)}</section>`,
      attribution: snapshot.attribution,
    })
  },
}

function list(found: Awaited<ReturnType<typeof findApps>>, asOf: string | undefined): Html {
  if (found.length === 0) {
    return html`<p class="empty">
      No listed app has this in its name. An app is listed while it is registered, public and no alias of
      another app.
    </p>`
  }
  return html`<p>${counted(found.length, 'app')}, those with the most tokens of the last 30 days first</p>
    <ul class="found">
      ${found.map(
        ({ app_id, app_name, total_tokens }) =>
          html`<li>
            <a href="${address(`${APPS_PATH}/${app_id}`, { as_of: asOf })}"><bdi>${app_name}</bdi></a>
            <span class="quiet" title="${exact(BigInt(total_tokens))} tokens">
              id ${app_id}, ${compact(BigInt(total_tokens))} tokens
            </span>
          </li>`,
      )}
    </ul>`
}
