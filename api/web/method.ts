/** GET /method: how the figures are computed, in plain words. */
import { FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { COMPARABILITY_NOTE, LICENCE } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { SnapshotFacts } from '../datasets/snapshots/open-snapshot.ts'
import { readParameters, badRequest } from '../http/protocol/query-parameters.ts'
import { queryString } from '../http/respond.ts'
import { HTML, renderDocument } from './document.ts'
import { html, type Html } from './html.ts'
import { exact } from './numbers.ts'
import { tabs } from './tabs.ts'
import type { View } from './views.ts'

/** The worked example: tokens of one app in four weeks, oldest first. */
const EXAMPLE = [300n, 500n, 400n, 1000n] as const

export const methodView: View<{ readonly parameters: Readonly<Record<string, never>> }> = {
  name: 'method',
  contentType: HTML,
  read(request) {
    const { faults } = readParameters({}, queryString(request))
    if (faults.length > 0) throw badRequest(faults)
    return { parameters: {} }
  },
  make: async ({ snapshot, freshness }) =>
    await Promise.resolve(
      renderDocument({
        title: 'Method',
        description: 'How the app rankings are counted, ordered, corrected and cited.',
        skipTo: { id: 'counted', label: 'Skip to the method' },
        header: html`<header>
          <h1>Method</h1>
          <p class="lede">How the rankings are counted, ordered, corrected and cited.</p>
        </header>`,
        main: html`${tabs(undefined, undefined)}
          <article class="prose">
            ${counting()} ${ranking()} ${gaps()} ${publishing(freshness.nextRun)} ${citing(snapshot)}
          </article>`,
        attribution: snapshot.attribution,
      }),
    ),
}

function counting(): Html {
  return html`<h2 id="counted">What is counted</h2>
    <p>
      Every request to a language model counts for one app, with its prompt tokens and its completion tokens.
      A day is a UTC day. Usage before ${FLOOR_DATE} is not part of the dataset.
    </p>
    <ul>
      <li>Aliases: traffic of an app that is registered as an alias counts for the app it stands for.</li>
      <li>Hidden and private apps are left out, and so is traffic of apps that are not registered.</li>
      <li>Requests without an app are counted by the operator and never ranked.</li>
      <li>A request that is reported twice under one id counts once.</li>
    </ul>
    <p>${COMPARABILITY_NOTE}</p>`
}

function ranking(): Html {
  const [first, second, third, now] = EXAMPLE
  const average = (first + second + third) / 3n
  return html`<h2 id="rules">The two orders</h2>
    <p>
      <strong>Popular</strong> orders apps by their tokens inside the window. Ties go to the lower app id. The
      page can order them by their requests instead.
    </p>
    <p>
      <strong>Trending</strong> orders apps by growth: the tokens of the window minus the average of the three
      windows of equal length just before it. Apps that did not grow are left out.
    </p>
    <p>
      Example, with windows of a week: an app used ${exact(first)}, ${exact(second)} and ${exact(third)}
      tokens in three weeks, and ${exact(now)} in the week that is ranked. The average before is
      ${exact(average)}, so its growth is ${exact(now)} − ${exact(average)} = ${exact(now - average)} tokens,
      or ${exact(((now - average) * 100n) / average)} percent. Popular ranks it by ${exact(now)}, trending by
      ${exact(now - average)}.
    </p>`
}

function gaps(): Html {
  return html`<h2 id="gaps">Missing, partial and restated days</h2>
    <ul>
      <li>A missing day has no delivered usage. It counts as zero in sums, and pages mark it.</li>
      <li>A partial day lacks rows that were rejected, at most one percent of them.</li>
      <li>
        The figures of a restated day changed after their first publication. Each snapshot lists such days
        with the cause: usage was counted again, an app was hidden or shown, its usage counts for another app,
        or it came into the registry or left it.
      </li>
    </ul>`
}

function publishing(nextRun: string | undefined): Html {
  return html`<h2 id="published">How often it is published</h2>
    <p>
      Each night the changed days are counted again and a new snapshot is
      published${nextRun === undefined ? '' : `, next at ${nextRun}`}. A snapshot never changes.
      <a href="${SNAPSHOTS_PATH}">All snapshots</a> stay under their own addresses; a wrong snapshot is
      withdrawn with a reason.
    </p>`
}

function citing({ attribution, sources }: SnapshotFacts): Html {
  return html`<h2 id="cite">How to cite, and how to get an app listed or corrected</h2>
    <p>
      The data is <a rel="license" href="${LICENCE.url}">CC BY 4.0</a>. Print this line, and link to the
      snapshot that you used:
    </p>
    <pre class="copy"><code>${attribution}</code></pre>
    ${sources === null ? null : html`<pre class="copy"><code>${sources}</code></pre>`}
    <p>
      An app is listed if its requests name it: send the header <code>HTTP-Referer</code> with its address and
      <code>X-Title</code> with its name. To correct a name, a category or an alias, or to hide an app, write
      to the operator of this service; corrections are part of the next night.
    </p>`
}
