/** Programs that are not ours, which a test may need beyond what `npm ci` brings. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Whether `program` can be started. Where it cannot, a line says which tests are left out; with REQUIRE_PROGRAMS
 * set, as the gate does, its absence is an error instead.
 */
export function hasProgram(program: string): boolean {
  return findProgram(program) !== undefined
}

/** The path of a program on the PATH or in one of `folders`; undefined where the tests are left out. */
export function findProgram(program: string, folders: readonly string[] = []): string | undefined {
  const onPath = spawnSync('which', [program], { encoding: 'utf8' }).stdout.trim()
  const found = [...folders.map((folder) => join(folder, program)), onPath].find(existsSync)
  if (found !== undefined) return found
  if (process.env['REQUIRE_PROGRAMS'])
    throw new Error(`${program} is not installed, and REQUIRE_PROGRAMS is set`)
  process.stderr.write(`${program} is not installed: the tests that need it are skipped\n`)
  return undefined
}

/** Whether the environment variable `name` leads to something a test needs; like hasProgram where it does not. */
export function hasFolder(name: string): boolean {
  if (process.env[name] !== undefined) return true
  if (process.env['REQUIRE_PROGRAMS']) throw new Error(`${name} is not set, and REQUIRE_PROGRAMS is set`)
  process.stderr.write(`${name} is not set: the tests that need it are skipped\n`)
  return false
}
