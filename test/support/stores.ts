/** The store on which a test of stored data runs: SQLite, and PostgreSQL among the system tests. */
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

/** The stores of one test file; `removeAll` belongs into its afterAll. */
export class TestStores {
  /** The kinds that this run tests; none, and a skipped test says so, where PostgreSQL is not installed. */
  readonly kinds: readonly StoreKind[]
  readonly sqlite: StoreKind
  readonly #folders = new TemporaryFolders()
  #server: Promise<Postgres> | undefined

  constructor() {
    this.sqlite = { name: 'SQLite', fresh: async () => ({ DATA_DIR: this.#folders.make() }) }
    this.kinds = process.env['TEST_STORE'] === 'PostgreSQL' ? this.#onPostgres() : [this.sqlite]
  }

  /** Every kind: for a system test, of which `npm test` has nothing. */
  get all(): readonly StoreKind[] {
    return [this.sqlite, ...this.#onPostgres()]
  }

  /** A describe for what does not depend on the kind of store: it runs with SQLite and not once more. */
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
