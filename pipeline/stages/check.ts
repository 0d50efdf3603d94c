/** The stage check: tests the snapshot before it is published, a query of checks.sql per check. */
import { sqlSections } from '../duckdb/statements.ts'
import { DataError } from '../errors.ts'
import { firstFew } from '../program/terminal.ts'
import type { Run, StageResult } from './stage.ts'

/** Offending rows shown for each check. */
const SHOWN = 5

/**
 * Runs every check; each must return no rows. The days in offending rows are counted again by the next run.
 * @throws DataError that names each failed check with its offending rows.
 */
export async function check(run: Run): Promise<StageResult> {
  const checks = [...sqlSections('checks.sql')]
  const failed: string[] = []
  for (const [index, [name, sql]] of checks.entries()) {
    const offending = (await run.connection.runAndReadAll(sql)).getRowObjectsJson()
    if (offending.length > 0) {
      failed.push(describeFailed(name, sql, offending))
      await countAgain(run, offending)
    }
    run.progress.step('check', index + 1, checks.length)
  }
  if (failed.length > 0) {
    throw new DataError(
      `${failed.length} of ${checks.length} checks failed, nothing is published:\n${failed.join('\n')}\n` +
        'The next run counts the days in these rows again; npm run nightly -- rebuild counts every day again',
    )
  }
  return { summary: `${checks.length} checks passed`, facts: { checks: checks.length } }
}

/** Without its fingerprint a day is read again, even if its files stay. */
async function countAgain(
  { connection }: Run,
  offending: readonly { readonly day?: unknown }[],
): Promise<void> {
  for (const day of new Set(offending.map((row) => row.day))) {
    if (typeof day !== 'string') continue
    await connection.run("UPDATE warehouse.days SET fingerprint = '' WHERE day = CAST($1 AS DATE)", [day])
  }
}

/** The first line of each check states it. */
function describeFailed(name: string, sql: string, offending: readonly object[]): string {
  const rule = /^-- (.*)$/m.exec(sql)?.[1] ?? name
  const rows = offending.map((row) => JSON.stringify(row))
  return [`  ${name}: ${rule} Offending rows:`, ...firstFew(rows, SHOWN)].join('\n    ')
}
