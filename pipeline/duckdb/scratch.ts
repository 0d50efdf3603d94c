/** Temporary files in DuckDB's spill folder, which is cleared after a kill. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { queryRows } from './statements.ts'

/** The path of a new file; the caller removes the file. */
export async function scratchPath(connection: DuckDBConnection): Promise<string> {
  const [setting] = await queryRows(
    connection,
    "SELECT current_setting('temp_directory') AS folder",
    z.object({ folder: z.string() }),
  )
  const folder = setting?.folder ?? ''
  mkdirSync(folder, { recursive: true })
  return join(folder, `scratch-${randomUUID()}`)
}
