/** Programs that are not ours, which a test may need beyond what `npm ci` brings. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

/**
 * Whether `program` can be started. Where it cannot, a line says which tests are left out; with REQUIRE_PROGRAMS
 * set, as the gate does, its absence is an error instead.
 */
export function hasProgram(program: string): boolean {
  return findProgram(program) !== undefined
}

/** As hasProgram, for a program that may lie in one of `folders`, off the PATH: how it is started. */
export function findProgram(program: string, folders: readonly string[] = []): string | undefined {
  const found = [...folders.map((folder) => join(folder, program)), program].find(starts)
  if (found !== undefined) return found
  if (process.env['REQUIRE_PROGRAMS'])
    throw new Error(`${program} is not installed, and REQUIRE_PROGRAMS is set`)
  process.stderr.write(`${program} is not installed: the tests that need it are skipped\n`)
  return undefined
}

function starts(program: string): boolean {
  return spawnSync(program, ['--version']).error === undefined
}
