/** Attaches published snapshots as databases, and explains why one cannot be opened. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SNAPSHOTS_FOLDER, SNAPSHOT_FILE } from '../contract/files.ts'
import { identifier, literal } from '../duckdb/sql-values.ts'
import { DataError, LockedError, heldLock, isShortage } from '../errors.ts'
import { ProgramError } from '../program/program.ts'
import type { Run } from '../stages/stage.ts'
import { isWhole } from './verify.ts'

/**
 * Attaches the published snapshot `id` of a DATA_DIR, read-only, as the database `name` while `work` runs.
 * @throws DataError that names the snapshot, if its file is damaged or was written to; LockedError while another process
 * has it open for writing.
 */
export async function withPublished<T>(
  { connection, config: { dataDir } }: Pick<Run, 'connection' | 'config'>,
  id: string,
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  const file = join(dataDir, SNAPSHOTS_FOLDER, id, SNAPSHOT_FILE)
  try {
    await connection.run(`ATTACH ${literal(file)} AS ${identifier(name)} (READ_ONLY)`)
    // A process that opens the file for writing may leave a WAL beside it, which DuckDB reads as part of it.
    if (existsSync(`${file}.wal`)) {
      throw new DataError(
        `The snapshot ${id} was opened for writing after it was published. Remove ${file}.wal, which holds the changes, and ` +
          'open published files read-only',
      )
    }
    const result = await work()
    await connection.run(`DETACH ${identifier(name)}`)
    return result
  } catch (error) {
    const held = heldLock(error)
    if (held !== undefined) {
      throw new LockedError(
        `${held}: it has the file open for writing, so no other process can read it. Close it, and open published files read-only`,
        { cause: error },
      )
    }
    // DuckDB's errors do not name the damaged file among the attached ones; the checksum finds it.
    if (error instanceof ProgramError || isShortage(error) || isWhole(dataDir, id)) throw error
    throw new DataError(
      `The snapshot ${id} is damaged: npm run nightly -- retract ${id} --reason TEXT withdraws it, and the next run ` +
        'publishes correct figures from raw/',
      { cause: error },
    )
  }
}
