/** The run's databases do not open files of other programs, and load no extension for them (CONTRACT 9). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import { openWarehouse, readWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it.each([
  ['an SQLite database', (path: string) => new DatabaseSync(path).exec('CREATE TABLE t (a)')],
  ['no database', (path: string) => writeFileSync(path, 'PAR1 and more'.repeat(1000))],
])('a warehouse that is %s is rejected with the remedy, for reading and writing', async (_kind, make) => {
  const dataDir = folders.make()
  make(join(dataDir, 'warehouse.duckdb'))
  for (const open of [
    openWarehouse,
    (folder: string, memory: string) => readWarehouse({ dataDir: folder, memory }, async () => undefined),
  ]) {
    await expect(open(dataDir, '1GB')).rejects.toThrow(
      /^Cannot open the warehouse .*warehouse\.duckdb: .* npm run nightly -- rebuild/,
    )
  }
})
