/** The stage check: tests the snapshot before it is published, one SQL file per check. */
import { readdirSync } from 'node:fs'
import { DataError } from '../errors.ts'
import type { Run, StageResult } from './stage.ts'
import { execute, sqlFile } from '../duckdb/statements.ts'

/** Offending rows shown for each check. */
const ROWS_SHOWN = 5

/**
 * Runs every check under sql/checks/; each must return no rows.
 * @throws DataError that names each failed check with its offending rows.
 */
export async function check(run: Run): Promise<StageResult> {
  const names = readdirSync(new URL('../sql/checks/', import.meta.url))
    .filter((name) => name.endsWith('.sql'))
    .toSorted()
  await execute(run.connection, 'day-totals.sql')
  const failed: string[] = []
  for (const [index, name] of names.entries()) {
    const sql = sqlFile(`checks/${name}`)
    const reader = await run.connection.runAndReadAll(sql)
    const offending = reader.getRowObjectsJson()
    if (offending.length > 0) failed.push(describeFailed(name, sql, offending))
    run.dependencies.progress.step('check', index + 1, names.length)
  }
  if (failed.length > 0) {
    throw new DataError(
      `${failed.length} of ${names.length} checks failed, nothing is published:\n${failed.join('\n')}`,
    )
  }
  return { summary: `${names.length} checks passed`, facts: { checks: names.length } }
}

/** The first line of each file states the check. */
function describeFailed(name: string, sql: string, offending: readonly object[]): string {
  const rule = /^-- (.*)$/m.exec(sql)?.[1] ?? name
  const rows = offending.slice(0, ROWS_SHOWN).map((row) => `    ${JSON.stringify(row)}`)
  const more = offending.length > ROWS_SHOWN ? [`    and ${offending.length - ROWS_SHOWN} more`] : []
  return [`  ${name.replace(/\.sql$/, '')}: ${rule} Offending rows:`, ...rows, ...more].join('\n')
}
