/** The stage check: proves the promises of the snapshot before anybody sees it, one SQL file per promise. */
import { readdirSync } from 'node:fs'
import { DataError } from '../errors.ts'
import type { Run, StageResult } from './stage.ts'
import { execute, sqlFile } from '../duckdb/statements.ts'

/** Offending rows shown per promise. */
const ROWS_SHOWN = 5

/**
 * Runs every check under sql/checks/; each must return no row.
 * @throws DataError that names each broken promise with offending rows.
 */
export async function check(run: Run): Promise<StageResult> {
  const names = readdirSync(new URL('../sql/checks/', import.meta.url))
    .filter((name) => name.endsWith('.sql'))
    .toSorted()
  await execute(run.connection, 'day-totals.sql')
  const broken: string[] = []
  for (const [index, name] of names.entries()) {
    const sql = sqlFile(`checks/${name}`)
    const reader = await run.connection.runAndReadAll(sql)
    const offending = reader.getRowObjectsJson()
    if (offending.length > 0) broken.push(describeBroken(name, sql, offending))
    run.dependencies.progress.step('check', index + 1, names.length)
  }
  if (broken.length > 0) {
    throw new DataError(
      `${broken.length} of ${names.length} checks failed, nothing is published:\n${broken.join('\n')}`,
    )
  }
  return { summary: `${names.length} promises hold`, facts: { checks: names.length } }
}

/** The first line of each file states the promise. */
function describeBroken(name: string, sql: string, offending: readonly object[]): string {
  const promise = /^-- (.*)$/m.exec(sql)?.[1] ?? name
  const rows = offending.slice(0, ROWS_SHOWN).map((row) => `    ${JSON.stringify(row)}`)
  const more = offending.length > ROWS_SHOWN ? [`    and ${offending.length - ROWS_SHOWN} more`] : []
  return [`  ${name.replace(/\.sql$/, '')}: ${promise} Offending rows:`, ...rows, ...more].join('\n')
}
