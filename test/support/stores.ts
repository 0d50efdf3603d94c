/** The stores for tests of stored data: SQLite, and PostgreSQL among the system tests. */
import { describe, it } from 'vitest'
import type { StoreSettings } from '../../api/store/open-store.ts'
import type { Store } from '../../api/store/store.ts'
import { makeFolder } from './folders.ts'
import { findPostgres, startPostgres, type Postgres } from './postgres.ts'

/** One kind of store; `describe.each(stores.kinds)('… on $name', ({ fresh }) => …)`. */
export type StoreKind = {
  readonly name: 'SQLite' | 'PostgreSQL'
  /** The settings of a new, empty store: for openStore, or with asEnvironment for a program. */
  readonly fresh: () => Promise<StoreSettings>
}

const isPostgres = process.env['TEST_STORE'] === 'PostgreSQL'
const sqlite: StoreKind = { name: 'SQLite', fresh: async () => ({ DATA_DIR: makeFolder() }) }

let server: Promise<Postgres> | undefined

function onPostgres(): readonly StoreKind[] {
  const bin = findPostgres()
  if (bin === undefined) {
    it.skip('on PostgreSQL, which is not installed', () => undefined)
    return []
  }
  const fresh = async () => {
    const { createDatabase } = await (server ??= startPostgres(bin))
    return { DATA_DIR: makeFolder(), DATABASE_URL: await createDatabase() }
  }
  return [{ name: 'PostgreSQL', fresh }]
}

export const stores = {
  sqlite,
  /** The kinds in this run; without PostgreSQL there is none, and a skipped test reports it. */
  get kinds() {
    return isPostgres ? onPostgres() : [sqlite]
  },
  /** Every kind, for system tests without a counterpart in `npm test`. */
  get all() {
    return [sqlite, ...onPostgres()]
  },
  /** A describe for tests that do not depend on the kind of store; it runs once, with SQLite. */
  describeOnce(name: string, body: () => void): void {
    if (!isPostgres) describe(name, body)
  },
}

/** The settings of a store as environment variables. */
export function asEnvironment({ DATA_DIR, DATABASE_URL = '' }: StoreSettings): Record<string, string> {
  return { DATA_DIR, DATABASE_URL }
}

/** Runs statements, each up to a semicolon at the end of a line, as one transaction. */
export async function runScript(store: Store, sql: string): Promise<void> {
  await store.transaction(async (queries) => {
    for (const statement of sql.split(/;$/m)) if (statement.trim() !== '') await queries.query(statement)
  })
}
