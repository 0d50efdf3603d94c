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
  return found ?? missing(`${program} is not installed`)
}

/** Whether the environment variable `name` is set; otherwise like hasProgram. */
export function hasFolder(name: string): boolean {
  return (process.env[name] ?? missing(`${name} is not set`)) !== undefined
}

function missing(what: string): undefined {
  if (process.env['REQUIRE_PROGRAMS']) throw new Error(`${what}, and REQUIRE_PROGRAMS is set`)
  process.stderr.write(`${what}: the tests that need it are skipped\n`)
}
