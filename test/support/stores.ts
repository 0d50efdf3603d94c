/** The stores on which a test of stored things runs: SQLite, and PostgreSQL where it is installed. */
import type { StoreSettings } from '../../api/store/open-store.ts'
import { TemporaryFolders } from './nightly.ts'
import { findPostgres, startPostgres, type Postgres } from './postgres.ts'

/** One kind of store; `describe.each(stores.kinds)('… on $name', ({ fresh }) => …)`. */
export interface StoreKind {
  readonly name: 'SQLite' | 'PostgreSQL'
  /** The settings of a new, empty store: for openStore, or with asEnvironment for a program. */
  readonly fresh: () => Promise<StoreSettings>
}

/** The stores of one test file; `removeAll` belongs into its afterAll. */
export class TestStores {
  readonly kinds: readonly [StoreKind, ...StoreKind[]]
  readonly #folders = new TemporaryFolders()
  #server: Promise<Postgres> | undefined

  constructor() {
    const sqlite: StoreKind = { name: 'SQLite', fresh: async () => ({ DATA_DIR: this.#folders.make() }) }
    const bin = findPostgres()
    this.kinds =
      bin === undefined ? [sqlite] : [sqlite, { name: 'PostgreSQL', fresh: () => this.#freshDatabase(bin) }]
  }

  async removeAll(): Promise<void> {
    await (await this.#server)?.remove()
    this.#folders.removeAll()
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
