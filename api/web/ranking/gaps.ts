/** Days that the data does not have, told apart from days without usage. */
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import type { SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import type { DateWindow } from '../../datasets/rankings/window.ts'
import { eachDay, inWords } from '../days.ts'
import { html, type Html } from '../html.ts'
import { counted } from '../numbers.ts'

/** The days of `window` of which no usage was delivered, also those before the first day of the data. */
export function missingDays(
  { firstDay, daysMissing }: Pick<SnapshotFacts, 'firstDay' | 'daysMissing'>,
  window: DateWindow,
): ReadonlySet<string> {
  const missing = new Set(daysMissing)
  return new Set(eachDay(window).filter((day) => day < firstDay || missing.has(day)))
}

/** Says which days of `window` are `missing` and which are partial; nothing where the data is whole. */
export function gapNote(
  snapshot: SnapshotFacts,
  window: DateWindow,
  missing: readonly string[],
): Html | null {
  const partial = snapshot.daysPartial.filter((day) => day >= window.start && day <= window.end)
  if (missing.length + partial.length === 0) return null
  const sentences = [
    ...(missing.length === 0
      ? []
      : [`${counted(missing.length, 'day')} of this window ${verb(missing)} missing: ${spans(missing)}`]),
    ...(partial.length === 0
      ? []
      : [
          `${counted(partial.length, 'day')} ${verb(partial)} partial, some rows were rejected: ${spans(partial)}`,
        ]),
  ]
  return html`<p class="quiet gaps">
    ${sentences.join('; ')}; see <a href="${SNAPSHOTS_PATH}/${snapshot.id}/coverage.csv">coverage</a>.
  </p>`
}

function verb({ length }: readonly string[]): string {
  return length === 1 ? 'is' : 'are'
}

/** Spans that a sentence can hold. */
const SPANS_TOLD = 8

/** Days in order, those that follow each other as one span: `2026-01-05, 2026-01-08 to 2026-01-10`. */
function spans(days: readonly string[]): string {
  const found: DateWindow[] = []
  for (const day of days) {
    const last = found.at(-1)
    if (last !== undefined && addDays(last.end, 1) === day) found[found.length - 1] = { ...last, end: day }
    else found.push({ start: day, end: day })
  }
  const told = found.slice(0, SPANS_TOLD).map(inWords).join(', ')
  return found.length > SPANS_TOLD ? `${told} and further days` : told
}
