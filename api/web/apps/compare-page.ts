/** GET /compare?apps=1,2,3 (CONTRACT 4.6): two to five apps on one chart, at a permanent address. */
import type { ReadableSnapshot } from '../../datasets/snapshots/open-snapshot.ts'
import { ApiError } from '../../http/errors.ts'
import { APPS_PATH, COMPARE_PATH } from '../../paths.ts'
import { inWords } from '../days.ts'
import { address } from '../addresses.ts'
import { inked, type Ink } from '../charts/colours.ts'
import { columnsOf, type Daily } from '../charts/columns.ts'
import { chartFigure } from '../charts/figure.ts'
import { drawLines, lineSwatch, type Scale } from '../charts/lines.ts'
import { HTML, renderDocument } from '../document.ts'
import { html, type Html } from '../html.ts'
import { even, exact } from '../numbers.ts'
import { provenance, times } from '../provenance.ts'
import { gapNote, readGaps } from '../ranking/gaps.ts'
import { tabs } from '../tabs.ts'
import type { View } from '../views.ts'
import { readApp, readHistory, type ListedApp } from './app-data.ts'
import { readComparisonRequest, COMPARED_APPS, type ComparisonRequest } from './parameters.ts'

interface Compared extends ListedApp, Ink {
  readonly daily: Daily
}

export const compareView: View<ComparisonRequest> = {
  name: 'compare',
  contentType: HTML,
  read: readComparisonRequest,
  async make({ snapshot }, { parameters: { apps, as_of, scale = 'linear' } }) {
    if (apps === undefined) {
      throw new ApiError(
        400,
        `Name 2 to ${COMPARED_APPS} apps by their ids: ${COMPARE_PATH}?apps=1,2,3; ${APPS_PATH}?q=NAME finds ids`,
      )
    }
    const compared = await readAll(snapshot, apps)
    const figure = await chartOf(snapshot, compared, scale)
    const names = compared.map(({ name }) => name).join(', ')
    const scaled = (other: Scale) => address(COMPARE_PATH, { apps, scale: other, as_of })
    return renderDocument({
      title: `${names} compared`,
      description: `Tokens per day of ${names}. ${snapshot.attribution}`,
      skipTo: { id: 'chart', label: 'Skip to the chart' },
      header: html`<header>
        <h1>Apps compared</h1>
        <p class="facts">${times(snapshot)}</p>
      </header>`,
      main: html`${tabs(undefined, as_of)}
        <nav class="filters" aria-label="Scale">
          <div role="group" aria-label="Scale">
            ${(['linear', 'log'] as const).map(
              (each) =>
                html`<a href="${scaled(each)}" ${each === scale ? html`aria-current="true"` : null}>
                  ${each === 'log' ? 'logarithmic' : each}
                </a>`,
            )}
          </div>
        </nav>
        ${figure} ${provenance(snapshot)} ${totals(compared, as_of)}`,
      attribution: snapshot.attribution,
    })
  },
}

async function readAll(snapshot: ReadableSnapshot, apps: string): Promise<readonly Compared[]> {
  const ids = [...new Set(apps.split(',').map(BigInt))]
  return inked(await Promise.all(ids.map((id) => readCompared(snapshot, id))))
}

async function readCompared(snapshot: ReadableSnapshot, id: bigint): Promise<ListedApp & { daily: Daily }> {
  const app = await readApp(snapshot, String(id))
  const history = await readHistory(snapshot, app.id)
  return { ...app, daily: new Map(history.map(({ day, total_tokens }) => [day, BigInt(total_tokens)])) }
}

/** The chart, from the first day of any of the apps. */
async function chartOf(
  snapshot: ReadableSnapshot,
  compared: readonly Compared[],
  scale: Scale,
): Promise<Html> {
  const [start] = compared.flatMap(({ daily }) => [...daily.keys()].slice(0, 1)).toSorted()
  if (start === undefined)
    return html`<p id="chart" class="empty">No usage of these apps is part of the data.</p>`
  const window = { start, end: snapshot.dataThrough }
  const gaps = await readGaps(snapshot, window)
  const columns = columnsOf(compared, window, gaps)
  return chartFigure({
    id: 'chart',
    measure: 'Tokens',
    caption: html`Tokens per ${columns.unit}, ${inWords(window)}`,
    note: gapNote(snapshot, gaps),
    columns,
    draw: (frame) => drawLines(columns, scale, frame),
    swatch: lineSwatch,
    isSum: false,
  })
}

function totals(compared: readonly Compared[], asOf: string | undefined): Html {
  return html`<div class="scroll" role="region" aria-label="All tokens of the chart" tabindex="0">
    <table>
      <caption>
        All tokens of the chart
      </caption>
      <tbody>
        ${compared.map((app) => {
          const tokens = [...app.daily.values()].reduce((sum, value) => sum + value, 0n)
          return html`<tr>
            <th scope="row">
              ${lineSwatch(app)}
              <a href="${address(`${APPS_PATH}/${app.id}`, { as_of: asOf })}"><bdi>${app.name}</bdi></a>
            </th>
            <td class="number" title="${exact(tokens)} tokens">${even(tokens)}</td>
          </tr>`
        })}
      </tbody>
    </table>
  </div>`
}
