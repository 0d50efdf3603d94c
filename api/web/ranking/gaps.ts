/** Days that are not like the others: missing, partial or restated, told apart from days without usage. */
import { z } from 'zod'
import { daySchema, describeRange, rangesOf } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import type { ReadableSnapshot, SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import type { DateWindow } from '../../datasets/rankings/window.ts'
import type { SpecialDays } from '../charts/columns.ts'
import { eachDay } from '../days.ts'
import { html, type Html } from '../html.ts'
import { counted } from '../numbers.ts'

/** The special days of a window. */
export interface Gaps extends SpecialDays {
  readonly window: DateWindow
  readonly partial: readonly string[]
  /** Days whose published figures changed, by cause. */
  readonly causes: ReadonlyMap<string, readonly string[]>
}

/** The days of `window` of which no usage was delivered, also those before the first day of the data. */
export function missingDays(
  { firstDay, daysMissing }: Pick<SnapshotFacts, 'firstDay' | 'daysMissing'>,
  window: DateWindow,
): ReadonlySet<string> {
  const missing = new Set(daysMissing)
  return new Set(eachDay(window).filter((day) => day < firstDay || missing.has(day)))
}

// Snapshots of an older version have no cause; all their rows are of new figures.
const RESTATED = `
  SELECT coalesce(to_json(r) ->> 'cause', 'figures') AS cause,
    CAST(to_json(list(DISTINCT CAST(r.day AS VARCHAR) ORDER BY CAST(r.day AS VARCHAR))) AS VARCHAR) AS days
  FROM restatements AS r
  WHERE r.day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
  GROUP BY ALL
  ORDER BY 1`

const restatedRows = z.array(z.object({ cause: z.string(), days: z.string() }))
const dayList = z.array(daySchema)

/** Reads the special days of a window. */
export async function readGaps(snapshot: ReadableSnapshot, { start, end }: DateWindow): Promise<Gaps> {
  const rows = restatedRows.parse(await snapshot.query(RESTATED, { start, end }))
  const causes = new Map(rows.map(({ cause, days }) => [cause, dayList.parse(JSON.parse(days))]))
  const window = { start, end }
  return {
    window,
    missing: missingDays(snapshot, window),
    partial: snapshot.daysPartial.filter((day) => day >= start && day <= end),
    restated: new Set(causes.get('figures')),
    causes,
  }
}

/** What a cause of the table restatements is to people. */
const CAUSES: Readonly<Record<string, string>> = {
  figures: 'usage was counted anew',
  visibility: 'an app was hidden or shown',
  alias: 'usage counts for another app',
  added: 'an app came into the registry',
  removed: 'an app left the registry',
}

/** Says which days are missing, partial and restated, and why; nothing where there are none. */
export function gapNote({ id }: SnapshotFacts, { missing, partial, causes }: Gaps): Html | null {
  const files = `${SNAPSHOTS_PATH}/${id}`
  const gaps = [
    ...(missing.size === 0
      ? []
      : [
          `${counted(missing.size, 'day')} of this window ${verb(missing.size)} missing: ${spans([...missing])}`,
        ]),
    ...(partial.length === 0
      ? []
      : [
          `${counted(partial.length, 'day')} ${verb(partial.length)} partial, some rows were rejected: ${spans(partial)}`,
        ]),
  ]
  const restated = [...causes].map(
    ([cause, days]) => `${counted(days.length, 'day')} because ${CAUSES[cause] ?? cause}: ${spans(days)}`,
  )
  return html`${
    gaps.length === 0
      ? null
      : html`<p class="quiet gaps">${gaps.join('; ')}; see <a href="${files}/coverage.csv">coverage</a>.</p>`
  }
  ${
    restated.length === 0
      ? null
      : html`<p class="quiet gaps">
          Restated after they were first published: ${restated.join('; ')}; see
          <a href="${files}/restatements.csv">restatements</a>.
          ${causes.has('figures') ? 'A dot below the chart marks days that were counted anew.' : null}
        </p>`
  }`
}

function verb(count: number): string {
  return count === 1 ? 'is' : 'are'
}

/** Spans that a sentence can hold. */
const SPANS_SHOWN = 8

/** Days in order, those that follow each other as one span: `2026-01-05, 2026-01-08 to 2026-01-10`. */
function spans(days: readonly string[]): string {
  const found = rangesOf(days)
  const shown = found.slice(0, SPANS_SHOWN).map(describeRange).join(', ')
  return found.length > SPANS_SHOWN ? `${shown} and further days` : shown
}
