/** Credits of the figures. */
import { readFileSync } from 'node:fs'
import type { SnapshotFacts } from '../datasets/snapshots/open-snapshot.ts'
import { html, type Html } from './html.ts'

/** The credit line of the bundled sample: weekly figures, spread over days. */
const SAMPLE = readFileSync(new URL('../../data/sample/ATTRIBUTION', import.meta.url), 'utf8').trim()

function isSample({ sources }: SnapshotFacts): boolean {
  return sources?.includes(SAMPLE) === true
}

/** The times of a snapshot, with a mark for the bundled sample. */
export function times(snapshot: SnapshotFacts): Html {
  const { dataThrough, asOf } = snapshot
  return html`<span>Data through <time datetime="${dataThrough}">${dataThrough}</time></span>
    <span>as of <time datetime="${asOf}">${asOf}</time></span>
    ${isSample(snapshot) ? html`<span class="badge warn">sample data</span>` : null}`
}

/** The credit lines, and a note on the days of the sample. */
export function provenance(snapshot: SnapshotFacts): Html | null {
  if (snapshot.sources === null) return null
  const note = isSample(snapshot) ? ' Single days of the sample are not measurements.' : ''
  return html`<p class="quiet sources">${snapshot.sources}${note}</p>`
}
