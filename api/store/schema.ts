/**
 * The tables of the store, created by the numbered SQL files of migrations/, which both databases share. So they use
 * BIGINT for values beyond 2^31, INTEGER 0 and 1 for booleans, TEXT for times, and no generated row numbers.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Queries, Store } from './store.ts'

const FOLDER = new URL('migrations/', import.meta.url)

const CREATE_LEDGER =
  'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)'
const APPLIED = 'SELECT name FROM migrations ORDER BY name'
const RECORD = 'INSERT INTO migrations (name, applied_at) VALUES ($1, $2)'

/**
 * Applies the files of `migrations/` after the last applied one, in order. One transaction, so that processes that start
 * together take turns.
 */
export async function updateSchema(store: Store, now: Date): Promise<void> {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.sql'))
  await store.transaction(async (queries) => {
    await queries.script(CREATE_LEDGER)
    const last = (await appliedMigrations(queries)).at(-1) ?? ''
    // The first file makes the tables of version 1.0.0, whose own migrations had the numbers up to it.
    for (const name of files.filter((file) => numberOf(file) > numberOf(last)).toSorted()) {
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

function numberOf(name: string): number {
  return Number.parseInt(name, 10) || 0
}
