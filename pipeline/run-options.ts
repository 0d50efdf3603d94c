/** Options of a run: let a gate through once, count a range of days again, or run as of another time. */
import { z } from 'zod'
import { FLOOR_DATE, daySchema, type DayRange } from './contract/calendar.ts'
import { textOption, UsageError } from './program/program.ts'

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

/** The options `--from` and `--to` of `run` and `plan`. */
export const RANGE_OPTIONS = {
  from: textOption('DAY', 'counts every day from this one on again, and no other day'),
  to: textOption('DAY', 'counts every day up to this one again (YYYY-MM-DD)'),
} as const

/** The option `--as-of` of `run` and `rebuild`. */
export const AS_OF_OPTION = {
  'as-of': textOption(
    'TIME',
    'runs as if it were TIME (ISO 8601, such as 2026-11-20T02:00:00Z): days up to the one before count as completed, ' +
      'and the snapshot states this time; a TIME in the future blocks later runs until then',
  ),
} as const

/**
 * The gates named by `--accept`, an option that may be repeated and may list several gates, separated by commas.
 * @throws UsageError for a gate that does not exist.
 */
export function readAccepted(given: readonly string[]): GateName[] {
  const names = given.flatMap((text) => text.split(',')).map((name) => name.trim())
  const unknown = names.find((name) => !GATES.some((gate) => gate === name))
  if (unknown !== undefined)
    throw new UsageError(`--accept "${unknown}" is no gate: expected ${GATES.join(', ')}`)
  return GATES.filter((gate) => names.includes(gate))
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
  for (const [option, day] of [
    ['--from', from],
    ['--to', to],
  ] as const) {
    if (!daySchema.safeParse(day).success)
      throw new UsageError(`${option} "${day}" is not a day: expected YYYY-MM-DD`)
    if (day < FLOOR_DATE)
      throw new UsageError(`${option} ${day} is before ${FLOOR_DATE}, the first day of the dataset`)
    if (day > lastDay)
      throw new UsageError(`${option} ${day} is not over yet: the last completed day is ${lastDay}`)
  }
  if (from > to) throw new UsageError(`--from ${from} is after --to ${to}`)
  return { from, to }
}

/**
 * The time of `--as-of`; undefined without it.
 * @throws UsageError if the text is not a time.
 */
export function readAsOf(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const time = z.iso.datetime({ offset: true }).safeParse(text)
  if (time.success) return new Date(time.data)
  throw new UsageError(`--as-of "${text}" is not a time: expected ISO 8601 such as 2026-11-20T02:00:00Z`)
}
