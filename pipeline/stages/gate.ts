/**
 * The stage gate: compares the checked snapshot with history. Valid input can still be incomplete: a half-delivered day, a
 * lost folder or registry file. Such a snapshot is blocked until the input is corrected or an operator accepts the finding.
 */
import { z } from 'zod'
import type { GateSettings } from '../config.ts'
import { pluralize } from '../program/terminal.ts'
import { BlockedError } from '../errors.ts'
import { withPublished } from '../snapshot/attach.ts'
import { GATES } from '../run-options.ts'
import type { GateName } from '../run-options.ts'
import { listSnapshots } from '../snapshot/list.ts'
import type { DuckDBListValue } from '@duckdb/node-api'
import { listValue } from '../duckdb/sql-values.ts'
import type { Run, StageResult } from './stage.ts'
import { countSchema, readRow, readRows } from '../duckdb/statements.ts'

/** With fewer earlier weekdays, nothing is usual or unusual. */
const FEWEST_WEEKS = 4

/** Days and apps named per finding, so that the message fits on one screen. */
const NAMED = 20
const VOLUMES_SHOWN = 6

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

/** A day's tokens or requests beside the median of the same weekday, doubled to be a whole number. */
export type Volume = z.infer<typeof volumeRow>

/** The days of the previous snapshot: the last one, and the missing ones before it. */
type Previous = { readonly published_through: string | null; readonly gaps: readonly string[] }

/** Why a gate blocks the snapshot. */
type Finding = { readonly gate: GateName; readonly reason: string }

type GateResult = {
  readonly findings: readonly Finding[]
  readonly facts: Readonly<Record<string, unknown>>
}

/**
 * Lets the snapshot through if its volume is usual, no rows or days are lost, and every published app is still registered.
 * The first snapshot is never blocked, since no older one could stay instead: findings are only noted.
 * @throws BlockedError with each gate's finding, its figures, and how to accept it once.
 */
export async function gate(run: Run): Promise<StageResult> {
  const previous = listSnapshots(run.config.dataDir).at(-1)
  const { findings, facts } = await compare(run, previous)
  const isAccepted = (finding: Finding) => run.options.accepted.includes(finding.gate)
  const others = findings.filter((finding) => !isAccepted(finding))
  if (previous !== undefined && others.length > 0)
    throw new BlockedError(describeBlocked(run, others, previous))
  for (const finding of findings) {
    const why = isAccepted(finding) ? ' by --accept' : ', since nothing is published yet'
    run.dependencies.progress.note(`Let through${why}, ${describeFinding(finding)}`)
  }
  return {
    summary:
      findings.length === 0
        ? `nothing unusual${previous === undefined ? '; there is no earlier snapshot' : ` beside ${previous}`}`
        : `findings let through: ${findings.length}`,
    facts: {
      compared_with: previous ?? null,
      ...facts,
      accepted: gatesOf(findings.filter(isAccepted)),
      as_first: gatesOf(others),
    },
    // The reasons stay out of the published report: they may name an app that was removed on purpose.
    privateFacts: { let_through: findings.map(describeFinding) },
  }
}

function describeFinding({ gate: name, reason }: Finding): string {
  return `${name}: ${reason}`
}

function gatesOf(findings: readonly Finding[]): GateName[] {
  return GATES.filter((name) => findings.some((finding) => finding.gate === name))
}

async function compare(run: Run, previous: string | undefined): Promise<GateResult> {
  const results =
    previous === undefined
      ? await compareNewDays(run, { published_through: null, gaps: [] })
      : await withPublished(run, { id: previous, name: 'previous' }, async () => [
          ...(await compareNewDays(run, await readRow(run.connection, 'gate.sql#previous', previousRow))),
          await compareRows(run),
          await compareApps(run),
        ])
  return {
    findings: results.flatMap(({ findings }) => findings),
    facts: Object.assign({}, ...results.map(({ facts }) => facts)),
  }
}

async function compareNewDays(run: Run, { published_through, gaps }: Previous): Promise<GateResult[]> {
  // DuckDB cannot bind an empty list, which has no type.
  const days = { published_through, gaps: gaps.length === 0 ? null : listValue(gaps) }
  return [await compareVolumes(run, days), await compareConflicts(run, days)]
}

type NewDays = { readonly published_through: string | null; readonly gaps: DuckDBListValue | null }

/** Rows that share a request_id but differ in app or tokens are not redeliveries: one of them is wrong. */
async function compareConflicts(run: Run, newDays: NewDays): Promise<GateResult> {
  const days = await readRows(run.connection, 'gate.sql#conflicts', conflictRow, newDays)
  const named = days.map(
    ({ day, rows_conflicting, rows_read }) => `${day}: ${rows_conflicting} of ${rows_read} rows`,
  )
  const reason =
    `rows that share a request_id and differ in app or tokens, more than one in a thousand: ${listed(named)}. ` +
    'Their files contradict each other; correct or remove one'
  return {
    findings: days.length === 0 ? [] : [{ gate: 'conflicts', reason }],
    facts: { days_conflicting: days.length },
  }
}

async function compareVolumes(run: Run, newDays: NewDays): Promise<GateResult> {
  const volumes = await readRows(run.connection, 'gate.sql#volume', volumeRow, newDays)
  const reasons = volumes.flatMap((volume) => volumeFinding(volume, run.config.gates) ?? [])
  const named = reasons.slice(0, VOLUMES_SHOWN)
  const more =
    reasons.length > named.length
      ? [`and ${pluralize(reasons.length - named.length, 'more figure')} like these`]
      : []
  const days = new Set(volumes.map(({ day }) => day))
  const judged = new Set(volumes.filter(hasHistory).map(({ day }) => day))
  return {
    findings: [...named, ...more].map((reason) => ({ gate: 'volume', reason })),
    facts: { days_judged: judged.size, days_without_history: days.size - judged.size },
  }
}

/** Whether enough earlier weekdays exist; a median of 0 allows no comparison. */
function hasHistory({ weeks, median_doubled }: Volume): boolean {
  return weeks >= FEWEST_WEEKS && median_doubled > 0n
}

/**
 * The reason why a volume is unusual; undefined if it is usual or has no history. Compares whole numbers; a volume exactly
 * at a threshold is usual.
 */
export function volumeFinding(volume: Volume, { volumeLow, volumeHigh }: GateSettings): string | undefined {
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
 * A percentage alone would never reveal one lost day among hundreds. A correction replaces a day and does not remove it,
 * so every published day that is missing is a finding.
 */
async function compareRows(run: Run): Promise<GateResult> {
  const { rowsLost } = run.config.gates
  const { rows_before, rows_lost } = await readRow(run.connection, 'gate.sql#rows', rowsRow)
  const days = (await readRows(run.connection, 'gate.sql#days', dayRow)).map(({ day }) => day)
  const allowed = fractionOf(rowsLost)
  const findings: Finding[] = []
  if (days.length > 0) {
    const reason = `published days that have no usage any more: ${days.length} (${listed(days)})`
    findings.push({ gate: 'rows', reason })
  }
  if (100n * rows_lost * allowed.denominator > rows_before * allowed.numerator) {
    const percent = thousandths(100n * rows_lost, rows_before)
    const reason =
      `${rows_lost} of ${rows_before} published rows (a day of an app) are gone, ${percent} %; ` +
      `allowed are ${rowsLost} %`
    findings.push({ gate: 'rows', reason })
  }
  const facts = { rows_before: Number(rows_before), rows_lost: Number(rows_lost), days_vanished: days.length }
  return { findings, facts }
}

async function compareApps(run: Run): Promise<GateResult> {
  const apps = await readRows(run.connection, 'gate.sql#apps', appRow)
  const named = apps.map(({ app_id, app_name }) => `${app_id} "${app_name}"`)
  const reason = `published apps that have no row left in the registry: ${apps.length} (${listed(named)})`
  return {
    findings: apps.length === 0 ? [] : [{ gate: 'apps', reason }],
    facts: { apps_vanished: apps.length },
  }
}

function listed(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : ''
  return `${names.slice(0, NAMED).join(', ')}${more}`
}

function describeBlocked(run: Run, findings: readonly Finding[], previous: string): string {
  const accept = gatesOf(findings).concat(run.options.accepted)
  return [
    `Blocked before publishing; ${previous} stays the newest snapshot:`,
    ...findings.map((finding) => `  ${describeFinding(finding)}`),
    'Correct the input and run again. If the figures are right, let them through once:',
    `  npm run nightly -- run --accept ${GATES.filter((name) => accept.includes(name)).join(',')}`,
  ].join('\n')
}

type Fraction = { readonly numerator: bigint; readonly denominator: bigint }

/** A decimal setting such as 0.5 as an exact fraction. */
function fractionOf(decimal: string): Fraction {
  const [whole = '', digits = ''] = decimal.split('.')
  return { numerator: BigInt(whole + digits), denominator: 10n ** BigInt(digits.length) }
}

/** A quotient with up to three decimals, rounded down, without trailing zeros. */
function thousandths(numerator: bigint, denominator: bigint): string {
  const quotient = (1000n * numerator) / denominator
  const places = String(quotient % 1000n)
    .padStart(3, '0')
    .replace(/0+$/, '')
  return `${quotient / 1000n}${places === '' ? '' : `.${places}`}`
}
