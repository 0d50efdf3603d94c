/** Restricts the SQL of a run to the files of DATA_DIR and the targets of its links. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { globSync, lstatSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { literal, pathPattern } from './sql-values.ts'

/** Folders in which operators may put links to other disks and to producers' files. */
const LINKED = ['*', 'snapshots/*', 'raw/*', 'raw/apps/*', 'raw/usage/*', 'raw/usage/*/*']

/** Forbids all other files, extensions and the network to the database of a connection, until it is closed. */
export async function allowOnly(connection: DuckDBConnection, dataDir: string): Promise<void> {
  // DuckDB resolves links before it compares; a broken link leads nowhere.
  const targets = globSync(LINKED, { cwd: dataDir })
    .map((name) => join(dataDir, name))
    .filter((path) => lstatSync(path).isSymbolicLink() && statSync(path, { throwIfNoEntry: false }))
    .map((path) => realpathSync(path))
  const [folders = [], files = []] = [true, false].map((isFolder) =>
    targets.filter((path) => statSync(path).isDirectory() === isFolder),
  )
  await connection.run(`
    SET allowed_directories = ${list([dataDir, realpathSync(dataDir), ...folders].map((path) => `${path}/`))};
    SET allowed_paths = ${list(files)};
    SET enable_external_access = false`)
}

/** DuckDB compares a path as its reader received it: as a pattern. */
function list(paths: readonly string[]): string {
  return `[${paths.flatMap((path) => [path, pathPattern(path)].map(literal)).join(', ')}]`
}
