import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('SQL of a run reaches only DATA_DIR and the targets of links in it', async () => {
  const [dataDir, disk, elsewhere] = [folders.make("it's"), folders.make(), folders.make()]
  for (const folder of [dataDir, disk, elsewhere]) writeFileSync(join(folder, 'a.csv'), 'a\n1\n')
  mkdirSync(join(dataDir, 'raw', 'usage'), { recursive: true })
  symlinkSync(disk, join(dataDir, 'raw', 'usage', 'date=2026-01-05'))
  mkdirSync(join(dataDir, 'raw', 'usage', 'date=2026-01-06'))
  symlinkSync(join(elsewhere, 'a.csv'), join(dataDir, 'raw', 'usage', 'date=2026-01-06', 'link.csv'))
  symlinkSync(join(elsewhere, 'gone'), join(dataDir, 'raw', 'usage', 'date=2026-01-06', 'broken.csv'))
  writeFileSync(join(elsewhere, 'b.csv'), 'a\n1\n')
  const warehouse = await openWarehouse(dataDir, '200MB')
  const read = async (path: string) => {
    const sql = `FROM read_csv('${path.replaceAll("'", "''")}')`
    return (await warehouse.connection.runAndReadAll(sql)).currentRowCount
  }
  try {
    expect(await read(join(dataDir, 'a.csv'))).toBe(1)
    expect(await read(join(dataDir, 'raw', 'usage', 'date=2026-01-05', 'a.csv'))).toBe(1)
    expect(await read(join(dataDir, 'raw', 'usage', 'date=2026-01-06', 'link.csv'))).toBe(1)
    await expect(read(join(elsewhere, 'b.csv'))).rejects.toThrow('Permission Error')
    await expect(warehouse.connection.run('INSTALL httpfs')).rejects.toThrow('Permission Error')
  } finally {
    warehouse.close()
  }
})
