/**
 * Registers apps that usage names by an address or a name: rows of raw/apps/by-name.ndjson, in the form of chat's rows. The
 * setting NEW_APPS at that time decides whether an app is published, until an operator decides otherwise.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { NewAppVisibility } from '../contract/app-identity.ts'
import { execute, readRows, transaction } from '../duckdb/statements.ts'
import { writeInOneStep } from '../snapshot/durable-file.ts'
import { decodeRegistry, stageRegistry } from './registry.ts'

const FILE = join('apps', 'by-name.ndjson')

const newRow = z.object({
  app_id: z.string().transform(Number),
  identity: z.string(),
  app_name: z.string(),
})

type Registration = {
  readonly rawFolder: string
  readonly visibility: NewAppVisibility
  readonly now: Date
}

/** Appends the apps of the table `app_names` that have usage but no row. */
export async function registerNames(
  connection: DuckDBConnection,
  { rawFolder, visibility, now }: Registration,
): Promise<void> {
  const { value: names } = z
    .object({ value: z.bigint() })
    .parse({ value: (await connection.runAndReadAll('SELECT count(*) FROM app_names')).getRows()[0]?.[0] })
  if (names === 0n) return
  await stageRegistry(connection, rawFolder)
  const apps = await transaction(connection, async () => {
    await decodeRegistry(connection)
    await aliasNames(connection)
    return await readRows(connection, 'resolve/names.sql#new', newRow)
  })
  if (apps.length === 0) return
  const time = now.toISOString()
  const lines = apps.map(({ app_id, identity, app_name }) =>
    JSON.stringify({
      app_id,
      app_name,
      visibility,
      subcategories: [],
      alias_of: null,
      updated_at: time,
      referer: identity,
      registered_at: time,
      revision: 0,
    }),
  )
  const path = join(rawFolder, FILE)
  mkdirSync(dirname(path), { recursive: true })
  const before = existsSync(path) ? readFileSync(path, 'utf8') : ''
  writeInOneStep(path, `${before}${lines.map((line) => `${line}\n`).join('')}`)
}

/** Adds aliases to the table `registry`: names of apps that the registry has under other ids. */
export async function aliasNames(connection: DuckDBConnection): Promise<void> {
  await execute(connection, 'resolve/names.sql#aliases')
}
