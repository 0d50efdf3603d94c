/** The run's databases do not open files of other programs, and load no extension for them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import { withMemoryDatabase } from '../../../pipeline/duckdb/memory-database.ts'
import { openWarehouse, openWarehouseToRead } from '../../../pipeline/duckdb/warehouse.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it.each([
  ['an SQLite database', (path: string) => new DatabaseSync(path).exec('CREATE TABLE t (a)')],
  ['not a DuckDB database', (path: string) => writeFileSync(path, 'PAR1 and more')],
])('a warehouse that is %s is rejected with the remedy, for reading and writing', async (kind, make) => {
  const dataDir = folders.make()
  make(join(dataDir, 'warehouse.duckdb'))
  for (const open of [openWarehouse, openWarehouseToRead]) {
    await expect(open(dataDir, '1GB')).rejects.toThrow(
      new RegExp(`warehouse\\.duckdb, is ${kind}\\. Move it away .* npm run nightly -- rebuild`),
    )
  }
})

it('no database of the run installs or loads extensions automatically', async () => {
  const dataDir = folders.make()
  const settings = `SELECT current_setting('autoinstall_known_extensions') AS installs,
    current_setting('autoload_known_extensions') AS loads`
  const opened = await openWarehouse(dataDir, '1GB')
  const warehouse = await opened.connection.runAndReadAll(settings)
  expect(warehouse.getRowObjectsJson()).toEqual([{ installs: false, loads: false }])
  opened.close()
  await withMemoryDatabase({ memory: '1GB', dataDir }, async (memory) => {
    const reader = await memory.runAndReadAll(settings)
    expect(reader.getRowObjectsJson()).toEqual([{ installs: false, loads: false }])
  })
})
