/** Restricts the SQL of a run to the files of DATA_DIR and the targets of its links. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { globSync, lstatSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { literal, pathPattern } from './sql-values.ts'

/** Folders in which operators may put links to other disks and to producers' files. */
const LINKED = ['*', 'snapshots/*', 'raw/*', 'raw/apps/*', 'raw/usage/*', 'raw/usage/*/*']

/** Forbids all other files, extensions and the network to the database of a connection, until it is closed. */
export async function allowOnly(connection: DuckDBConnection, dataDir: string): Promise<void> {
  // DuckDB resolves links before it compares.
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

/** DuckDB compares the path as the reader received it: a pattern. */
function spellings(path: string): string[] {
  return [path, pathPattern(path)]
}

function list(paths: readonly string[]): string {
  return `[${paths.map(literal).join(', ')}]`
}

/** The target of a link; empty for any other file and for a broken link. */
function targetOf(path: string): string[] {
  try {
    return lstatSync(path).isSymbolicLink() ? [realpathSync(path)] : []
  } catch {
    return []
  }
}
