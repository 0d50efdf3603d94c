/**
 * The stage gate: compares the checked snapshot with history. Valid input can still be incomplete: a half-delivered day, a
 * lost folder or registry file. Such a snapshot is blocked until the input is corrected or an operator accepts the finding.
 */
import { z } from 'zod'
import { execute, readRows, setVariables } from '../duckdb/statements.ts'
import { BlockedError } from '../errors.ts'
import { firstFew } from '../program/terminal.ts'
import { GATES, type GateName } from '../run-options.ts'
import { withPublished } from '../snapshot/attach.ts'
import { listSnapshots } from '../snapshot/list.ts'
import type { Run, StageResult } from './stage.ts'

/** Findings shown of each gate, so that the message fits on one screen. */
const SHOWN = 6

const findingRow = z.object({ reason: z.string() }).transform(({ reason }) => reason)

/** Why a gate blocks the snapshot: the name of the gate, and the figures behind it. */
type Finding = { readonly gate: GateName; readonly text: string }

/**
 * Lets the snapshot through if its volume is usual, no rows or days are lost, and every published app is still registered.
 * The first snapshot is never blocked, since no older one could stay instead: findings are only noted.
 * @throws BlockedError with each gate's finding, its figures, and how to accept it once.
 */
export async function gate(run: Run): Promise<StageResult> {
  const previous = listSnapshots(run.config.dataDir).at(-1)
  await setVariables(run.connection, run.config.gates)
  await execute(run.connection, 'gate.sql#macros')
  const findings =
    previous === undefined
      ? await query(run, 'nothing-published', ['volume', 'conflicts'])
      : await withPublished(run, previous, 'previous', () => query(run, 'published-days', GATES))
  const accepted = findings.filter((finding) => run.options.accepted.includes(finding.gate))
  const others = findings.filter((finding) => !accepted.includes(finding))
  if (previous !== undefined && others.length > 0)
    throw new BlockedError(describeBlocked(run, others, previous))
  for (const finding of findings) {
    const why = accepted.includes(finding) ? 'by --accept' : 'since nothing is published yet'
    run.progress.note(`Let through ${why}, ${finding.text}`)
  }
  return {
    summary:
      findings.length > 0
        ? `findings let through: ${findings.length}`
        : `nothing unusual${previous === undefined ? '' : ` beside ${previous}`}`,
    // Without the reasons, which may name an app that was removed on purpose: this report is published.
    facts: { compared_with: previous ?? null, accepted: gatesOf(accepted), as_first: gatesOf(others) },
  }
}

async function query(run: Run, preparation: string, gates: readonly GateName[]): Promise<Finding[]> {
  await execute(run.connection, `gate.sql#${preparation}`)
  const findings = await Array.fromAsync(gates, async (name) => {
    const reasons = await readRows(run.connection, `gate.sql#${name}`, findingRow)
    return firstFew(reasons, SHOWN).map((reason) => ({ gate: name, text: `${name}: ${reason}` }))
  })
  return findings.flat()
}

function gatesOf(findings: readonly Finding[]): GateName[] {
  return GATES.filter((name) => findings.some((finding) => finding.gate === name))
}

function describeBlocked(run: Run, findings: readonly Finding[], previous: string): string {
  const accept = gatesOf(findings).concat(run.options.accepted)
  return [
    `Blocked before publishing; ${previous} stays the newest snapshot:`,
    ...findings.map(({ text }) => `  ${text}`),
    'Correct the input and run again. If the figures are right, let them through once:',
    `  npm run nightly -- run --accept ${GATES.filter((name) => accept.includes(name)).join(',')}`,
  ].join('\n')
}
