/** Every file under pipeline/sql, and every named statement in one, is run by its name, and every name has its text. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { REPOSITORY } from '../support/processes.ts'

const FOLDER = join(REPOSITORY, 'pipeline', 'sql')

/** A file's own path, or, where it holds several statements, `path#name` of each. */
function statementsOf(file: string): string[] {
  const names = readFileSync(join(FOLDER, file), 'utf8').matchAll(/^-- name: (.*)$/gm)
  const statements = Array.from(names, ([, name]) => `${file}#${name}`)
  return statements.length === 0 ? [file] : statements
}

it('every SQL statement has one name, by which the pipeline runs it', () => {
  const files = globSync('**/*.sql', { cwd: FOLDER }).filter((file) => !file.startsWith('checks/'))
  const code = globSync('pipeline/**/*.ts', { cwd: REPOSITORY })
    .map((file) => readFileSync(join(REPOSITORY, file), 'utf8'))
    .join('\n')
  const run = Array.from(code.matchAll(/'([\w/-]+\.sql(?:#[\w-]+)?)'/g), ([, name]) => String(name))
  // A folder or file of which all statements decide what a snapshot holds is named as a whole, to be hashed.
  const whole = files.filter((file) => statementsOf(file)[0] !== file)
  const named = new Set(run.filter((name) => !whole.includes(name)))
  expect([...named].toSorted()).toEqual(files.flatMap(statementsOf).toSorted())
})
