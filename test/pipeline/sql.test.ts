/** Every file under pipeline/sql, and every named statement in a file, is used by its name, and every used name exists. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { REPOSITORY } from '../support/processes.ts'

const FOLDER = join(REPOSITORY, 'pipeline', 'sql')

/** The path of a file with one statement, or `path#name` of each statement. */
function statementsOf(file: string): string[] {
  const names = readFileSync(join(FOLDER, file), 'utf8').matchAll(/^-- name: (.*)$/gm)
  const statements = Array.from(names, ([, name]) => `${file}#${name}`)
  return statements.length === 0 ? [file] : statements
}

it('every SQL statement has one name, and the pipeline uses every name', () => {
  const files = globSync('**/*.sql', { cwd: FOLDER }).filter(
    (file) => !['checks.sql', 'gate.sql'].includes(file),
  )
  const code = globSync('pipeline/**/*.ts', { cwd: REPOSITORY })
    .map((file) => readFileSync(join(REPOSITORY, file), 'utf8'))
    .join('\n')
  const run = Array.from(code.matchAll(/'([\w/-]+\.sql(?:#[\w-]+)?)'/g), ([, name]) => String(name))
  // Files and folders that decide a snapshot are listed as a whole, for the hash.
  const whole = files.filter((file) => statementsOf(file)[0] !== file)
  const named = new Set(run.filter((name) => !whole.includes(name)))
  expect([...named].filter((name) => !name.match(/^(?:checks|gate)\.sql/)).toSorted()).toEqual(
    files.flatMap(statementsOf).toSorted(),
  )
})
