/** Options of a run: let a gate through once, count a range of days again, or run as of another time. */
import { z } from 'zod'
import { FLOOR_DATE, type DayRange } from './contract/calendar.ts'
import { list, oneOf, option } from './program/options.ts'
import { UsageError } from './program/program.ts'

/** The gates before publishing, in the order of their findings; see gate.ts. */
export const GATES = ['volume', 'rows', 'apps', 'conflicts'] as const
export type GateName = (typeof GATES)[number]

export type RunOptions = {
  /** Gates that may not block this run. */
  readonly accepted: readonly GateName[]
  /** The range of days that is counted again; undefined for all changed days. */
  readonly range: DayRange | undefined
}

export const USUAL_RUN: RunOptions = { accepted: [], range: undefined }

/** A day of the dataset. */
const dayOfRange = z.iso.date('Expected a day, YYYY-MM-DD')

/** The options of `run` and `plan` for a range of days. */
export const RANGE_OPTIONS = {
  from: option('DAY', 'counts every day from this one on again, and no other day', dayOfRange),
  to: option('DAY', 'counts every day up to this one again (YYYY-MM-DD)', dayOfRange),
}

/** The option of `run` that lets gates through. */
export const ACCEPT_OPTION = {
  accept: list('GATE', `lets a gate through once: ${GATES.join(', ')}`, oneOf(GATES)),
}

/** The option of `run` and `rebuild`. */
export const AS_OF_OPTION = {
  'as-of': option(
    'TIME',
    'runs as if it were TIME (ISO 8601, such as 2026-11-20T02:00:00Z): days up to the one before count as completed, ' +
      'and the snapshot states this time; a TIME in the future blocks later runs until then',
    z.iso
      .datetime({ offset: true, error: 'Expected a time in ISO 8601, such as 2026-11-20T02:00:00Z' })
      .transform((text) => new Date(text)),
  ),
}

/**
 * The range of `--from` and `--to`; undefined without either. `--from` alone ends at the last completed day,
 * `--to` alone begins at the floor.
 * @throws UsageError that names the option at fault.
 */
export function readRange(
  given: { readonly from?: string | undefined; readonly to?: string | undefined },
  lastDay: string,
): DayRange | undefined {
  if (given.from === undefined && given.to === undefined) return undefined
  const { from = FLOOR_DATE, to = lastDay } = given
  const last = to < lastDay ? to : lastDay
  if (from > last) throw new UsageError(`--from ${from} is after ${last}: --to, or the last completed day`)
  return { from, to }
}
