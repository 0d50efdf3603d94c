/**
 * The stage gate: compares the checked snapshot with history before anybody sees it. Right in itself it may still be
 * short: a day half delivered, a folder lost, a registry file gone. What looks like that is blocked, until it is
 * corrected or let through by name.
 */
import { z } from 'zod'
import type { GateSettings } from '../config.ts'
import { pluralize } from '../contract/terminal.ts'
import { BlockedError } from '../errors.ts'
import { withPublished } from '../snapshot/attach.ts'
import { GATES } from '../run-options.ts'
import type { GateName } from '../run-options.ts'
import { listSnapshots } from '../snapshot/list.ts'
import type { DuckDBListValue } from '@duckdb/node-api'
import { listValue } from '../duckdb/sql-values.ts'
import type { Run, StageResult } from './stage.ts'
import { countSchema, readRow, readRows } from '../duckdb/statements.ts'

/** Fewer earlier weekdays than this say nothing about what is usual. */
const FEWEST_WEEKS = 4

/** Days and apps named per objection: the message fits on one screen. */
const NAMED = 20
const VOLUMES_TOLD = 6

const wholeNumber = z.string().transform(BigInt)
const volumeRow = z.object({
  day: z.string(),
  weekday: z.string(),
  measure: z.enum(['tokens', 'requests']),
  measured: wholeNumber,
  weeks: countSchema,
  median_doubled: wholeNumber,
})
const previousRow = z.object({ published_through: z.string(), gaps: z.array(z.string()) })
const rowsRow = z.object({ rows_before: wholeNumber, rows_lost: wholeNumber })
const dayRow = z.object({ day: z.string() })
const conflictRow = z.object({ day: z.string(), rows_conflicting: z.string(), rows_read: z.string() })
const appRow = z.object({ app_id: z.string(), app_name: z.string() })

/** A day's tokens or requests beside the median of the same weekday; the median doubled, to be whole. */
export type Volume = z.infer<typeof volumeRow>

/** Which days the snapshot before has: up to when, and which are missing in between. */
type Previous = { readonly published_through: string | null; readonly gaps: readonly string[] }

/** Why a gate would not let the snapshot through. */
type Objection = { readonly gate: GateName; readonly reason: string }

type Verdict = {
  readonly objections: readonly Objection[]
  readonly facts: Readonly<Record<string, unknown>>
}

/**
 * Lets the snapshot through when its volume is usual, no rows or days are lost and no app is gone without a trace.
 * While nothing is published, objections are told and block nothing: there is no snapshot that could stay.
 * @throws BlockedError that tells each gate's objection with its figures, and how to let it through once.
 */
export async function gate(run: Run): Promise<StageResult> {
  const previous = listSnapshots(run.config.dataDir).at(-1)
  const { objections, facts } = await judge(run, previous)
  const isAccepted = (objection: Objection) => run.options.accepted.includes(objection.gate)
  const others = objections.filter((objection) => !isAccepted(objection))
  if (previous !== undefined && others.length > 0)
    throw new BlockedError(describeBlocked(run, others, previous))
  for (const objection of objections) {
    const why = isAccepted(objection) ? ' by --accept' : ', since nothing is published yet'
    run.effects.progress.note(`Let through${why}, ${told(objection)}`)
  }
  return {
    summary:
      objections.length === 0
        ? `nothing unusual beside ${previous ?? 'its own history'}`
        : `objections let through: ${objections.length}`,
    facts: {
      compared_with: previous ?? null,
      ...facts,
      accepted: gatesOf(objections.filter(isAccepted)),
      as_first: gatesOf(others),
    },
    // The reasons may name an app that was removed so that it is not named any more.
    privateFacts: { let_through: objections.map(told) },
  }
}

function told({ gate: name, reason }: Objection): string {
  return `${name}: ${reason}`
}

function gatesOf(objections: readonly Objection[]): GateName[] {
  return GATES.filter((name) => objections.some((objection) => objection.gate === name))
}

async function judge(run: Run, previous: string | undefined): Promise<Verdict> {
  const verdicts =
    previous === undefined
      ? await judgeNewDays(run, { published_through: null, gaps: [] })
      : await withPublished(run, { id: previous, name: 'previous' }, async () => [
          ...(await judgeNewDays(run, await readRow(run.connection, 'gates/previous.sql', previousRow))),
          await judgeRows(run),
          await judgeApps(run),
        ])
  return {
    objections: verdicts.flatMap(({ objections }) => objections),
    facts: Object.assign({}, ...verdicts.map(({ facts }) => facts)),
  }
}

async function judgeNewDays(run: Run, { published_through, gaps }: Previous): Promise<Verdict[]> {
  // An empty list could not be bound: it has no type.
  const days = { published_through, gaps: gaps.length === 0 ? null : listValue(gaps) }
  return [await judgeVolumes(run, days), await judgeConflicts(run, days)]
}

type NewDays = { readonly published_through: string | null; readonly gaps: DuckDBListValue | null }

/** Rows that share a request_id and differ in app or tokens are no redeliveries: one of them is wrong. */
async function judgeConflicts(run: Run, newDays: NewDays): Promise<Verdict> {
  const days = await readRows(run.connection, 'gates/conflicts.sql', conflictRow, newDays)
  const named = days.map(
    ({ day, rows_conflicting, rows_read }) => `${day}: ${rows_conflicting} of ${rows_read} rows`,
  )
  const reason =
    `rows that share a request_id and differ in app or tokens, more than one in a thousand: ${listed(named)}. ` +
    'One file says something else than another; correct or remove it'
  return {
    objections: days.length === 0 ? [] : [{ gate: 'conflicts', reason }],
    facts: { days_conflicting: days.length },
  }
}

async function judgeVolumes(run: Run, newDays: NewDays): Promise<Verdict> {
  const volumes = await readRows(run.connection, 'gates/volume.sql', volumeRow, newDays)
  const reasons = volumes.flatMap((volume) => objectionTo(volume, run.config.gates) ?? [])
  const named = reasons.slice(0, VOLUMES_TOLD)
  const more =
    reasons.length > named.length
      ? [`and ${pluralize(reasons.length - named.length, 'more figure')} like these`]
      : []
  const days = new Set(volumes.map(({ day }) => day))
  const judged = new Set(volumes.filter(hasHistory).map(({ day }) => day))
  return {
    objections: [...named, ...more].map((reason) => ({ gate: 'volume', reason })),
    facts: { days_judged: judged.size, days_without_history: days.size - judged.size },
  }
}

/** Whether there are enough earlier weekdays; nothing can be compared with a median of 0. */
function hasHistory({ weeks, median_doubled }: Volume): boolean {
  return weeks >= FEWEST_WEEKS && median_doubled > 0n
}

/**
 * What is unusual about a volume; undefined when it is usual or has no history to be compared with. Compared in
 * whole numbers; a volume exactly at a threshold is usual.
 */
export function objectionTo(volume: Volume, { volumeLow, volumeHigh }: GateSettings): string | undefined {
  if (!hasHistory(volume)) return undefined
  const { day, weekday, measure, measured, weeks, median_doubled } = volume
  const low = fractionOf(volumeLow)
  const high = fractionOf(volumeHigh)
  const usual =
    2n * measured * low.denominator >= low.numerator * median_doubled &&
    2n * measured * high.denominator <= high.numerator * median_doubled
  if (usual) return undefined
  const median = `${median_doubled / 2n}${median_doubled % 2n === 0n ? '' : '.5'}`
  return (
    `${day} has ${measured} ${measure}, ${thousandths(2n * measured, median_doubled)} times ${median}, the median of ` +
    `the ${weeks} ${weekday}s before it; allowed are ${volumeLow} to ${volumeHigh} times`
  )
}

/**
 * A percentage alone would never see one lost day among hundreds, and a correction replaces a day, it does not
 * remove it: so any published day that is missing now is an objection of its own.
 */
async function judgeRows(run: Run): Promise<Verdict> {
  const { rowsLost } = run.config.gates
  const { rows_before, rows_lost } = await readRow(run.connection, 'gates/rows.sql', rowsRow)
  const days = (await readRows(run.connection, 'gates/days.sql', dayRow)).map(({ day }) => day)
  const allowed = fractionOf(rowsLost)
  const objections: Objection[] = []
  if (days.length > 0) {
    const reason = `published days that have no usage any more: ${days.length} (${listed(days)})`
    objections.push({ gate: 'rows', reason })
  }
  if (100n * rows_lost * allowed.denominator > rows_before * allowed.numerator) {
    const percent = thousandths(100n * rows_lost, rows_before)
    const reason =
      `${rows_lost} of ${rows_before} published rows (a day of an app) are gone, ${percent} %; ` +
      `allowed are ${rowsLost} %`
    objections.push({ gate: 'rows', reason })
  }
  const facts = { rows_before: Number(rows_before), rows_lost: Number(rows_lost), days_vanished: days.length }
  return { objections, facts }
}

async function judgeApps(run: Run): Promise<Verdict> {
  const apps = await readRows(run.connection, 'gates/apps.sql', appRow)
  const named = apps.map(({ app_id, app_name }) => `${app_id} "${app_name}"`)
  const reason = `published apps that have no row left in the registry: ${apps.length} (${listed(named)})`
  return {
    objections: apps.length === 0 ? [] : [{ gate: 'apps', reason }],
    facts: { apps_vanished: apps.length },
  }
}

function listed(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : ''
  return `${names.slice(0, NAMED).join(', ')}${more}`
}

function describeBlocked(run: Run, objections: readonly Objection[], previous: string): string {
  const accept = gatesOf(objections).concat(run.options.accepted)
  return [
    `Blocked before publishing; ${previous} stays the newest snapshot:`,
    ...objections.map((objection) => `  ${told(objection)}`),
    'Correct the input and run again. If the figures are right, let them through once:',
    `  npm run nightly -- run --accept ${GATES.filter((name) => accept.includes(name)).join(',')}`,
  ].join('\n')
}

type Fraction = { readonly numerator: bigint; readonly denominator: bigint }

/** A setting such as 0.5, exactly. */
function fractionOf(decimal: string): Fraction {
  const [whole = '', digits = ''] = decimal.split('.')
  return { numerator: BigInt(whole + digits), denominator: 10n ** BigInt(digits.length) }
}

/** A quotient to three places, rounded down, without zeros at its end. */
function thousandths(numerator: bigint, denominator: bigint): string {
  const quotient = (1000n * numerator) / denominator
  const places = String(quotient % 1000n)
    .padStart(3, '0')
    .replace(/0+$/, '')
  return `${quotient / 1000n}${places === '' ? '' : `.${places}`}`
}
