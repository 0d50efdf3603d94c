/** An in-memory database spills into DATA_DIR, and its spilled files disappear with it. */
import { existsSync, globSync, readdirSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import { explained } from '../../../../pipeline/errors.ts'
import { withMemoryDatabase } from '../../../../pipeline/duckdb/memory-database.ts'
import { openWarehouse } from '../../../../pipeline/duckdb/warehouse.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { startProcess } from '../../../support/processes.ts'

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
  const error: unknown = await spilling.catch((reason: unknown) => reason)
  expect(explained(error, dataDir)).toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(/raise PIPELINE_MEMORY or PIPELINE_SPILL and run again/),
  })
})

it('of a killed process is removed by the next run, but not of a running one', async () => {
  const dataDir = folders.make()
  const script = `
    import { withMemoryDatabase } from './pipeline/duckdb/memory-database.ts'
    const spill = async (connection) => {
      await connection.run(process.argv[2])
      process.kill(process.pid, 'SIGKILL')
    }
    await withMemoryDatabase({ memory: '100MB', dataDir: process.argv[1] }, spill)`
  const args = ['--input-type=module', '--eval', script, dataDir, LARGE]
  const { signal } = await startProcess(process.execPath, args, { environment: {} }).ended
  expect(signal).toBe('SIGKILL')
  expect(spilledIn(dataDir)).toHaveLength(1)
  await withMemoryDatabase({ memory: '100MB', dataDir }, async (connection) => {
    await connection.run(LARGE)
    const warehouse = await openWarehouse(dataDir, '100MB')
    warehouse.close()
    expect(spilledIn(dataDir)).toHaveLength(1)
    await connection.run('FROM large LIMIT 1')
  })
  expect(readdirSync(dataDir)).toEqual(['warehouse.duckdb'])
})
