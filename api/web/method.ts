/** GET /method: how the figures are computed, in plain words. */
import { FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { COMPARABILITY_NOTE } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { badRequest, readParameters } from '../http/protocol/query-parameters.ts'
import { queryString } from '../http/respond.ts'
import { HTML, renderDocument } from './document.ts'
import { firstLine } from './first-line.ts'
import { html, type Html } from './html.ts'
import type { View, ViewContext } from './views.ts'

export const methodView: View<{ readonly parameters: Readonly<Record<string, never>> }> = {
  name: 'method',
  contentType: HTML,
  read(request) {
    const { faults } = readParameters({}, queryString(request))
    if (faults.length > 0) throw badRequest(faults)
    return { parameters: {} }
  },
  make: (context) =>
    Promise.resolve(
      renderDocument({
        title: 'Method',
        description: 'How the app rankings are counted, ordered, corrected and cited.',
        header: firstLine('Method', context),
        main: html`<article>${text(context)}</article>`,
      }),
    ),
}

function text({ snapshot }: ViewContext): Html {
  return html`<h2>What is counted</h2>
    <p>
      Every request to a language model counts for one app, with its prompt and completion tokens, on its UTC
      day. A request that is reported twice under one id counts once. Traffic of an alias counts for the app
      it stands for. Hidden, private and unregistered apps are left out, and so is usage before ${FLOOR_DATE}.
    </p>
    <p>${COMPARABILITY_NOTE}</p>
    <h2>The two orders</h2>
    <p>
      <strong>Popular</strong> orders apps by their tokens inside the window; ties go to the lower app id. The
      page can order them by requests instead. <strong>Trending</strong> orders apps by growth: the tokens of
      the window minus the average of the three windows of equal length just before it. Apps that did not grow
      are left out.
    </p>
    <p>
      Example, with windows of a week: an app used 300, 500 and 400 tokens in three weeks, and 1,000 in the
      week that is ranked. The average before is 400, so its growth is 1,000 − 400 = 600 tokens, or 150
      percent.
    </p>
    <h2>Missing, partial and restated days</h2>
    <p>
      A missing day has no delivered usage: charts show a gap, sums count zero. A partial day lacks rows that
      were rejected, at most one percent of them. The figures of a restated day changed after their first
      publication; each snapshot lists such days with the cause.
    </p>
    <h2>Publishing and citing</h2>
    <p>
      Each night the changed days are counted again and a new snapshot is published. A snapshot never changes.
      <a href="${SNAPSHOTS_PATH}">All snapshots</a> keep their addresses; a wrong one is withdrawn with a
      reason. The data is licensed CC BY 4.0: print this line, and link to the snapshot that you used.
    </p>
    <pre>${snapshot.attribution}${snapshot.sources === null ? null : `\n${snapshot.sources}`}</pre>
    <p>
      An app is listed if its requests name it: send the header <code>HTTP-Referer</code> with its address and
      <code>X-Title</code> with its name. To correct a name, a category or an alias, or to hide an app, write
      to the operator of this service.
    </p>`
}
