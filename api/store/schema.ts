/**
 * The tables of the store, created by the numbered SQL files of migrations/, which both databases share. So they use
 * BIGINT for values beyond 2^31, INTEGER 0 and 1 for booleans, TEXT for times, and no generated row numbers.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Queries, Store } from './store.ts'

const FOLDER = new URL('migrations/', import.meta.url)

/** The table of applied migrations. */
const LEDGER = 'migrations'

const CREATE_LEDGER = `
  CREATE TABLE IF NOT EXISTS ${LEDGER} (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)`
const APPLIED = `SELECT name FROM ${LEDGER} ORDER BY name`
const RECORD = `INSERT INTO ${LEDGER} (name, applied_at) VALUES ($1, $2)`

/**
 * Applies the missing files of `migrations/` in order. One transaction, so that processes that start together take
 * turns.
 */
export async function updateSchema(store: Store, now: Date): Promise<void> {
  await store.transaction(async (queries) => {
    await queries.script(CREATE_LEDGER)
    const applied = await appliedMigrations(queries)
    for (const name of migrationFiles().filter((file) => !applied.includes(file))) {
      await queries.script(readFileSync(new URL(name, FOLDER), 'utf8'))
      await queries.query(RECORD, [name, now.toISOString()])
    }
  })
}

/** The names of the applied migrations, in order. */
export async function appliedMigrations(queries: Queries): Promise<readonly string[]> {
  return z
    .array(z.object({ name: z.string() }))
    .parse(await queries.query(APPLIED))
    .map(({ name }) => name)
}

/** The names of all migrations, in order. */
function migrationFiles(): readonly string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sql'))
    .toSorted()
}
