/**
 * The tables of the store, made by the numbered SQL files of migrations/, the same files in both databases. So they
 * say BIGINT for what may pass 2^31, INTEGER 0 and 1 for truth values, TEXT for times, and number no rows by themselves.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Queries, Store } from './store.ts'

const FOLDER = new URL('migrations/', import.meta.url)

/** The table that lists the migrations which a store has. */
export const LEDGER = 'migrations'

const CREATE_LEDGER = `
  CREATE TABLE IF NOT EXISTS ${LEDGER} (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)`
const APPLIED = `SELECT name FROM ${LEDGER} ORDER BY name`
const RECORD = `INSERT INTO ${LEDGER} (name, applied_at) VALUES ($1, $2)`

/**
 * Brings the store's tables up to date: every file of `migrations/` that was not applied yet, in order.
 * One transaction, so processes that start together take turns and only the first finds anything to do.
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

/** The names of the migrations that the store's ledger lists, in order. */
export async function appliedMigrations(queries: Queries): Promise<readonly string[]> {
  return z
    .array(z.object({ name: z.string() }))
    .parse(await queries.query(APPLIED))
    .map(({ name }) => name)
}

/** The names of all migrations there are, in the order in which they are applied. */
export function migrationFiles(): readonly string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sql'))
    .toSorted()
}
