import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { globSync, rmSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Config } from './config.ts'

/** Begins the names of the folders in DATA_DIR into which these databases spill; the process follows. */
const SPILL_PREFIX = '.spilled-'

/**
 * A DuckDB of its own while `work` runs, without any file and so without the lock of the warehouse. What passes
 * its memory limit is spilled into DATA_DIR.
 */
export async function withMemoryDatabase<T>(
  { memory, dataDir }: Pick<Config, 'memory' | 'dataDir'>,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  // By default it would be the working directory, whoever else spills there.
  const spilled = spillFolder(dataDir)
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: memory,
    temp_directory: spilled,
    autoinstall_known_extensions: 'false',
  })
  const connection = await instance.connect()
  try {
    await connection.run("SET TimeZone = 'UTC'")
    return await work(connection)
  } finally {
    connection.closeSync()
    instance.closeSync()
    rmSync(spilled, { recursive: true, force: true })
  }
}

/** Processes of two containers may have one number, so chance tells them apart. */
function spillFolder(dataDir: string): string {
  return join(dataDir, `${SPILL_PREFIX}${process.pid}-${randomUUID()}`)
}

/** Removes what databases of killed processes had spilled into DATA_DIR. */
export function clearSpilled(dataDir: string): void {
  for (const name of globSync(`${SPILL_PREFIX}*`, { cwd: dataDir })) {
    if (!isRunning(Number.parseInt(name.slice(SPILL_PREFIX.length), 10))) {
      rmSync(join(dataDir, name), { recursive: true, force: true })
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // A process of another user may not be asked, and so there is one.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
