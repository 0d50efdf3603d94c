/** The stores for tests of stored data: SQLite, and PostgreSQL among the system tests. */
import { describe, it } from 'vitest'
import type { StoreSettings } from '../../api/store/open-store.ts'
import { TemporaryFolders } from './pipeline/nightly.ts'
import { findPostgres, startPostgres, type Postgres } from './postgres.ts'

/** One kind of store; `describe.each(stores.kinds)('… on $name', ({ fresh }) => …)`. */
export interface StoreKind {
  readonly name: 'SQLite' | 'PostgreSQL'
  /** The settings of a new, empty store: for openStore, or with asEnvironment for a program. */
  readonly fresh: () => Promise<StoreSettings>
}

/** The stores of a test file; call `removeAll` in its afterAll. */
export class TestStores {
  /** The kinds in this run; without PostgreSQL there is none, and a skipped test reports it. */
  readonly kinds: readonly StoreKind[]
  readonly sqlite: StoreKind
  readonly #folders = new TemporaryFolders()
  #server: Promise<Postgres> | undefined

  constructor() {
    this.sqlite = { name: 'SQLite', fresh: async () => ({ DATA_DIR: this.#folders.make() }) }
    this.kinds = process.env['TEST_STORE'] === 'PostgreSQL' ? this.#onPostgres() : [this.sqlite]
  }

  /** Every kind, for system tests without a counterpart in `npm test`. */
  get all(): readonly StoreKind[] {
    return [this.sqlite, ...this.#onPostgres()]
  }

  /** A describe for tests that do not depend on the kind of store; it runs once, with SQLite. */
  describeOnce(name: string, body: () => void): void {
    if (this.kinds.includes(this.sqlite)) describe(name, body)
  }

  async removeAll(): Promise<void> {
    await (await this.#server)?.remove()
    this.#folders.removeAll()
  }

  #onPostgres(): readonly StoreKind[] {
    const bin = findPostgres()
    if (bin !== undefined) return [{ name: 'PostgreSQL', fresh: () => this.#freshDatabase(bin) }]
    it.skip('on PostgreSQL, which is not installed', () => undefined)
    return []
  }

  async #freshDatabase(bin: string): Promise<StoreSettings> {
    this.#server ??= startPostgres(bin)
    const { createDatabase } = await this.#server
    return { DATA_DIR: this.#folders.make(), DATABASE_URL: await createDatabase() }
  }
}

/** The settings of a store as environment variables. */
export function asEnvironment({ DATA_DIR, DATABASE_URL = '' }: StoreSettings): Record<string, string> {
  return { DATA_DIR, DATABASE_URL }
}
