/** GET /compare?apps=1,2,3 (CONTRACT 4.6): two to five apps on one chart, by an address that can be shared. */
import type { ReadableSnapshot } from '../../datasets/snapshots/open-snapshot.ts'
import { ApiError } from '../../http/errors.ts'
import { APPS_PATH, COMPARE_PATH } from '../../paths.ts'
import { inWords } from '../days.ts'
import { HTML, renderDocument } from '../document.ts'
import { html, type Html } from '../html.ts'
import { drawLines, type Scale } from '../line-chart.ts'
import { compact, exact } from '../numbers.ts'
import { gapNote, missingDays } from '../ranking/gaps.ts'
import type { View } from '../views.ts'
import { readApp, readHistory, type ListedApp } from './app-data.ts'
import { askedComparison, COMPARED_APPS, type AskedComparison } from './parameters.ts'

/** An app with its tokens per day. */
interface Compared {
  readonly app: ListedApp
  readonly daily: ReadonlyMap<string, bigint>
}

export const compareView: View<AskedComparison> = {
  name: 'compare',
  contentType: HTML,
  read: askedComparison,
  async make({ snapshot }, { parameters: { apps, as_of, scale = 'linear' } }) {
    if (apps === undefined) {
      throw new ApiError(
        400,
        `Name 2 to ${COMPARED_APPS} apps by their ids: ${COMPARE_PATH}?apps=1,2,3; ${APPS_PATH}?q=NAME finds ids`,
      )
    }
    const compared = await Promise.all([...new Set(apps.split(','))].map((id) => readCompared(snapshot, id)))
    const window = { start: firstDayOf(compared) ?? snapshot.firstDay, end: snapshot.dataThrough }
    const missing = missingDays(snapshot, window)
    const names = compared.map(({ app }) => app.name).join(', ')
    const address = (other: Scale) =>
      `${COMPARE_PATH}?${new URLSearchParams({ apps, scale: other, ...(as_of === undefined ? {} : { as_of }) }).toString()}`
    return renderDocument({
      title: `${names} compared`,
      description: `Tokens per day of ${names}. ${snapshot.attribution}`,
      skipTo: { id: 'chart', label: 'Skip to the chart' },
      header: html`<header>
        <h1>Apps compared</h1>
        <p class="facts">
          <span>Data through ${snapshot.dataThrough}</span> <span>as of ${snapshot.asOf}</span>
        </p>
      </header>`,
      main: html`<nav class="filters" aria-label="Scale">
          <div role="group" aria-label="Scale">
            ${(['linear', 'log'] as const).map(
              (each) =>
                html`<a href="${address(each)}" ${each === scale ? html`aria-current="true"` : null}>
                  ${each === 'log' ? 'logarithmic' : each}
                </a>`,
            )}
          </div>
        </nav>
        <figure id="chart">
          <figcaption>Tokens per day, ${inWords(window)}</figcaption>
          ${gapNote(snapshot, window, [...missing])}
          ${drawLines(
            compared.map(({ app, daily }) => ({ name: app.name, daily })),
            { window, missing, scale },
          )}
        </figure>
        ${totals(compared, as_of)}`,
      attribution: snapshot.attribution,
    })
  },
}

async function readCompared(snapshot: ReadableSnapshot, id: string): Promise<Compared> {
  const app = await readApp(snapshot, id)
  const history = await readHistory(snapshot, app.id)
  return { app, daily: new Map(history.map(({ day, total_tokens }) => [day, BigInt(total_tokens)])) }
}

function firstDayOf(compared: readonly Compared[]): string | undefined {
  return compared.flatMap(({ daily }) => [...daily.keys()].slice(0, 1)).toSorted()[0]
}

function totals(compared: readonly Compared[], asOf: string | undefined): Html {
  const pin = asOf === undefined ? '' : `?as_of=${encodeURIComponent(asOf)}`
  return html`<table>
    <caption>
      All tokens of the chart
    </caption>
    <tbody>
      ${compared.map(({ app, daily }, index) => {
        const tokens = [...daily.values()].reduce((sum, value) => sum + value, 0n)
        return html`<tr>
          <th scope="row">
            <span class="key band-${index}"></span>
            <a href="${APPS_PATH}/${app.id}${pin}"><bdi>${app.name}</bdi></a>
          </th>
          <td class="number" title="${exact(tokens)} tokens">${compact(tokens)}</td>
        </tr>`
      })}
    </tbody>
  </table>`
}
