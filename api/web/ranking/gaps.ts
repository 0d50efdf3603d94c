/** Special days: missing, partial or restated, as opposed to days without usage. */
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
  /** Restated days by cause. */
  readonly causes: ReadonlyMap<string, readonly string[]>
}

/** The days of `window` without delivered usage, including days before the first day of the data. */
export function missingDays(
  { firstDay, daysMissing }: Pick<SnapshotFacts, 'firstDay' | 'daysMissing'>,
  window: DateWindow,
): ReadonlySet<string> {
  const missing = new Set(daysMissing)
  return new Set(eachDay(window).filter((day) => day < firstDay || missing.has(day)))
}

// Snapshots of an older version have no cause; all their rows are about new figures.
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

/** The causes of the table restatements, for people. */
const CAUSES: Readonly<Record<string, string>> = {
  figures: 'usage was counted again',
  visibility: 'an app was hidden or shown',
  alias: 'usage counts for another app',
  added: 'an app was added to the registry',
  removed: 'an app was removed from the registry',
}

/** Lists missing, partial and restated days with their causes; null without any. */
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
          ${causes.has('figures') ? 'A dot below the chart marks days that were counted again.' : null}
        </p>`
  }`
}

function verb(count: number): string {
  return count === 1 ? 'is' : 'are'
}

/** Spans per sentence. */
const SPANS_SHOWN = 8

/** Days in order, with consecutive days as spans: `2026-01-05, 2026-01-08 to 2026-01-10`. */
function spans(days: readonly string[]): string {
  const found = rangesOf(days)
  const shown = found.slice(0, SPANS_SHOWN).map(describeRange).join(', ')
  return found.length > SPANS_SHOWN ? `${shown} and further days` : shown
}
