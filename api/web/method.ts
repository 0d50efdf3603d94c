/** GET /method: how the figures are computed, in plain words. */
import { FLOOR_DATE } from '../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import { renderDocument } from './document.ts'
import { HTML, html } from './html.ts'
import type { View } from './views.ts'

const TEXT = html`<article>
  <h2>What is counted</h2>
  <p>
    Every request to a language model counts for one app, with its prompt and completion tokens, on its UTC
    day. A request that is reported twice under one id counts once. Traffic of an alias counts for the app it
    stands for. Hidden, private and unregistered apps are left out, and so is usage before ${FLOOR_DATE}.
  </p>
  <h2>The orders</h2>
  <p>
    <strong>Popular</strong> orders apps by their tokens inside the window; ties go to the lower app id.
    <strong>Trending</strong> orders them by growth: the tokens of the window minus the average of the three
    windows of equal length just before it. Example: after three weeks of 300, 500 and 400 tokens, a week of
    1,000 is a growth of 1,000 − 400 = 600 tokens, or 150 percent. Apps that did not grow are left out.
  </p>
  <h2>Missing, partial and restated days</h2>
  <p>
    A missing day has no delivered usage: charts show a gap, sums count zero. A partial day lacks rows that
    were rejected, at most one percent of them. The figures of a restated day changed after they were first
    published; each snapshot lists such days with the cause.
  </p>
  <h2>Publishing and correcting</h2>
  <p>
    Each night a new snapshot is published. A snapshot never changes, and
    <a href="${SNAPSHOTS_PATH}">all of them</a> keep their addresses; a wrong one is withdrawn with a reason.
    An app is listed if its requests carry <code>HTTP-Referer</code> with its address and
    <code>X-Title</code> with its name. To correct or hide an app, write to the operator of this service.
  </p>
</article>`

export const methodView: View = {
  contentType: HTML,
  parameters: {},
  make: (context) =>
    renderDocument({
      title: 'Method',
      description: 'How the app rankings are counted, ordered, corrected and cited.',
      context,
      main: TEXT,
    }),
}
