import { readdirSync, readFileSync } from 'node:fs'
import type { Store } from './store.ts'

const FOLDER = new URL('migrations/', import.meta.url)

const CREATE_LEDGER = `
  CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)`
const APPLIED = 'SELECT name FROM migrations'
const RECORD = 'INSERT INTO migrations (name, applied_at) VALUES ($1, $2)'

/**
 * Brings the store's tables up to date: every file of `migrations/` that was not applied yet, in order.
 * One transaction, so processes that start together take turns and only the first finds anything to do.
 */
export async function migrate(store: Store, now: Date): Promise<void> {
  await store.transaction(async (queries) => {
    await queries.script(CREATE_LEDGER)
    const applied = new Set((await queries.query(APPLIED)).map((row) => row['name']))
    for (const name of migrationFiles().filter((file) => !applied.has(file))) {
      await queries.script(readFileSync(new URL(name, FOLDER), 'utf8'))
      await queries.query(RECORD, [name, now.toISOString()])
    }
  })
}

function migrationFiles(): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sql'))
    .toSorted()
}
