/** The controls of the page: order, window, category, snapshot, and search. */
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { CATEGORIES, subcategoriesOf } from '../../../pipeline/contract/taxonomy.ts'
import type { SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import { APPS_PATH } from '../../paths.ts'
import { snapshotField } from '../addresses.ts'
import type { Age } from '../age.ts'
import { html, type Html } from '../html.ts'
import { counted } from '../numbers.ts'
import { times } from '../provenance.ts'
import { daysOfWindow, WINDOWS } from './page-query.ts'
import type { PageView } from './page-view.ts'

/** Title, description of the data, and freshness. */
export function header({ snapshot, isCurrent, freshness }: PageView): Html {
  return html`<header>
    <h1>App rankings</h1>
    <p class="lede">Which apps use large language models, by how much, and which are growing.</p>
    <p class="facts">
      ${times(snapshot)}
      ${isCurrent ? ageBadge(freshness.age, snapshot) : html`<span class="badge warn">an earlier snapshot</span>`}
      ${freshness.nextRun === undefined ? null : html`<span class="quiet">next run ${freshness.nextRun}</span>`}
    </p>
  </header>`
}

function ageBadge(age: Age, { dataThrough }: SnapshotFacts): Html {
  switch (age) {
    case 'current':
      return html`<span class="badge good">up to date</span>`
    case 'ended':
      return html`<span class="badge warn">data ends ${dataThrough}</span>`
    case 'overdue':
      return html`<span class="badge warn">stale: a new snapshot is overdue</span>`
  }
}

/** The filters, as shareable links. */
export function filters({ snapshot, query, asked, links }: PageView): Html {
  const chosenDays = daysOfWindow(asked, snapshot)
  const group = asked.parameters.category ?? groupOf(query.subcategory)
  const choice = (label: string, change: Record<string, string | null>, chosen: boolean) =>
    html`<a href="${links.page(change)}" ${chosen ? html`aria-current="true"` : null}>${label}</a>`
  return html`<nav class="filters" aria-label="Filters">
    <div role="group" aria-label="Order">
      ${SORTS.map((sort) =>
        choice(sort, { sort, by: null }, sort === query.sort && query.measure === 'tokens'),
      )}
      ${choice('by requests', { sort: 'popular', by: 'requests' }, query.measure === 'requests')}
    </div>
    <div role="group" aria-label="Window">
      ${WINDOWS.map((days) =>
        choice(
          counted(days, 'day'),
          { days: String(days), start_date: null, end_date: null },
          chosenDays === days,
        ),
      )}
    </div>
    <div role="group" aria-label="Category">
      ${choice('all', { category: null, subcategory: null }, group === undefined)}
      ${CATEGORIES.map((category) => choice(category, { category, subcategory: null }, category === group))}
    </div>
    ${
      group === undefined
        ? null
        : html`<div role="group" aria-label="Subcategory">
            ${choice(`all ${group}`, { category: group, subcategory: null }, query.subcategory === null)}
            ${subcategoriesOf(group).map((subcategory) =>
              choice(subcategory, { category: group, subcategory }, subcategory === query.subcategory),
            )}
          </div>`
    }
  </nav>`
}

function groupOf(subcategory: string | null) {
  return CATEGORIES.find((category) => subcategoriesOf(category).some((each) => each === subcategory))
}

/** The search for apps by name. */
export function search({ asked }: PageView): Html {
  return html`<form method="get" action="${APPS_PATH}" class="picker" role="search">
    <label for="q">Find an app</label>
    <input id="q" name="q" type="search" required maxlength="100" />
    ${snapshotField(asked.parameters.as_of)}
    <button type="submit">Search</button>
  </form>`
}

/** The shown snapshot, and the other retained ones. */
export function snapshotPicker(view: PageView): Html {
  const { snapshot, isCurrent, asked, entries, retractions, query, links } = view
  const hidden = {
    sort: query.sort,
    by: asked.by,
    category: asked.parameters.category,
    subcategory: query.subcategory,
    days: asked.days,
    start_date: asked.parameters.start_date,
    end_date: asked.parameters.end_date,
    limit: asked.parameters.limit,
  }
  return html`<form method="get" action="/" class="picker">
    ${Object.entries(hidden).map(([name, value]) =>
      value === null || value === undefined
        ? null
        : html`<input type="hidden" name="${name}" value="${value}" />`,
    )}
    <label for="as_of">Snapshot</label>
    <select id="as_of" name="as_of">
      ${entries.map(
        ({ as_of }) =>
          html`<option value="${as_of}" ${as_of === snapshot.asOf ? html`selected` : null}>${as_of}</option>`,
      )}
      ${retractions.map(({ as_of }) => html`<option disabled>${as_of} (withdrawn)</option>`)}
    </select>
    <button type="submit">Show</button>
    ${isCurrent ? null : html`<a href="${links.page({ as_of: null })}">newest</a>`}
    ${
      retractions.length === 0
        ? null
        : html`<ul class="quiet">
            ${retractions.map(({ as_of, reason }) => html`<li>${as_of} was withdrawn: ${reason}</li>`)}
          </ul>`
    }
  </form>`
}
