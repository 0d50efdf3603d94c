/** Which files SQL of a run may touch: those of DATA_DIR, and what links in it lead to. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { globSync, lstatSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { literal, pathPattern } from './sql-values.ts'

/** Where an operator may put links: folders on other disks, and files of producers. */
const LINKED = ['*', 'snapshots/*', 'raw/*', 'raw/apps/*', 'raw/usage/*', 'raw/usage/*/*']

/** Forbids the database of a connection, for as long as it is open, all other files, extensions and the network. */
export async function allowOnly(connection: DuckDBConnection, dataDir: string): Promise<void> {
  // DuckDB follows links before it compares.
  const targets = LINKED.flatMap((pattern) => globSync(pattern, { cwd: dataDir }))
    .map((name) => join(dataDir, name))
    .flatMap(targetOf)
  const folders = targets.filter((path) => statSync(path).isDirectory()).map((path) => `${path}/`)
  const files = targets.filter((path) => statSync(path).isFile())
  await connection.run(`
    SET allowed_directories = ${list([`${dataDir}/`, `${realpathSync(dataDir)}/`, ...folders].flatMap(spellings))};
    SET allowed_paths = ${list(files.flatMap(spellings))};
    SET enable_external_access = false`)
}

/** DuckDB compares a path as a reader got it, which is its pattern. */
function spellings(path: string): string[] {
  return [path, pathPattern(path)]
}

function list(paths: readonly string[]): string {
  return `[${paths.map(literal).join(', ')}]`
}

/** Where a link leads; nothing for what is no link, or leads nowhere. */
function targetOf(path: string): string[] {
  try {
    return lstatSync(path).isSymbolicLink() ? [realpathSync(path)] : []
  } catch {
    return []
  }
}
