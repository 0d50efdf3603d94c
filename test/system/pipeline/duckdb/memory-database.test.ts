/** CONTRACT 9: an in-memory database spills into DATA_DIR, and its spilled files disappear with it. */
import { existsSync, globSync, readdirSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import { withMemoryDatabase } from '../../../../pipeline/duckdb/memory-database.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'

/** Some 200 MB of incompressible data. */
const LARGE = `CREATE TEMP TABLE large AS
  SELECT concat(hash(i), hash(i + 1), hash(i + 7)) AS digits FROM range(4000000) AS t (i)`

const folders = new TemporaryFolders()
const spilledIn = (dataDir: string) => globSync('.spilled-*', { cwd: dataDir })

afterAll(() => folders.removeAll())

it('is spilled during the work, and removed afterwards', async () => {
  const dataDir = folders.make()
  const spilled = await withMemoryDatabase({ memory: '100MB', dataDir }, async (connection) => {
    await connection.run(LARGE)
    return spilledIn(dataDir)
  })
  expect(spilled).toHaveLength(1)
  expect(readdirSync(dataDir)).toEqual([])
  expect(existsSync('.tmp')).toBe(false)
})

it('uses no more disk than PIPELINE_SPILL allows, and reports the limit', async () => {
  const dataDir = folders.make()
  const spilling = withMemoryDatabase({ memory: '100MB', dataDir, spill: '1MB' }, async (connection) => {
    await connection.run(LARGE)
  })
  await expect(spilling).rejects.toThrow('max_temp_directory_size')
})
