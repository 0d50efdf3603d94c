/** Installed programs that some tests need beyond `npm ci`. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Whether `program` can be started. If not, a line on stderr names the skipped tests; with REQUIRE_PROGRAMS set, as in the
 * gate, its absence is an error.
 */
export function hasProgram(program: string): boolean {
  return findProgram(program) !== undefined
}

/** The path of a program on the PATH or in one of `folders`; undefined if its tests are skipped. */
export function findProgram(program: string, folders: readonly string[] = []): string | undefined {
  const onPath = spawnSync('which', [program], { encoding: 'utf8' }).stdout.trim()
  const found = [...folders.map((folder) => join(folder, program)), onPath].find(existsSync)
  if (found !== undefined) return found
  if (process.env['REQUIRE_PROGRAMS'])
    throw new Error(`${program} is not installed, and REQUIRE_PROGRAMS is set`)
  process.stderr.write(`${program} is not installed: the tests that need it are skipped\n`)
  return undefined
}

/** Whether the environment variable `name` is set; otherwise like hasProgram. */
export function hasFolder(name: string): boolean {
  if (process.env[name] !== undefined) return true
  if (process.env['REQUIRE_PROGRAMS']) throw new Error(`${name} is not set, and REQUIRE_PROGRAMS is set`)
  process.stderr.write(`${name} is not set: the tests that need it are skipped\n`)
  return false
}
