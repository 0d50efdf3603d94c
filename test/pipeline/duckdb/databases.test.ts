/** CONTRACT 9: the databases of a run reach only DATA_DIR, open no foreign files, lose no row to a later table, and leave no files. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { scratchPath, withMemoryDatabase } from '../../../pipeline/duckdb/database.ts'
import { withAppender } from '../../../pipeline/duckdb/statements.ts'
import { openWarehouse, readWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { makeFolder } from '../../support/folders.ts'

it('SQL of a run reaches only DATA_DIR and the targets of links in it', async () => {
  const [dataDir, disk, elsewhere] = [makeFolder("it's"), makeFolder(), makeFolder()]
  for (const folder of [dataDir, disk, elsewhere]) writeFileSync(join(folder, 'a.csv'), 'a\n1\n')
  const usage = join(dataDir, 'raw', 'usage')
  mkdirSync(join(usage, 'date=2026-01-06'), { recursive: true })
  symlinkSync(disk, join(usage, 'date=2026-01-05'))
  symlinkSync(join(elsewhere, 'a.csv'), join(usage, 'date=2026-01-06', 'link.csv'))
  symlinkSync(join(elsewhere, 'gone'), join(usage, 'date=2026-01-06', 'broken.csv'))
  writeFileSync(join(elsewhere, 'b.csv'), 'a\n1\n')
  const warehouse = await openWarehouse({ dataDir, memory: '200MB' })
  const read = async (path: string) => {
    const sql = `FROM read_csv('${path.replaceAll("'", "''")}')`
    return (await warehouse.connection.runAndReadAll(sql)).currentRowCount
  }
  try {
    expect(await read(join(dataDir, 'a.csv'))).toBe(1)
    expect(await read(join(usage, 'date=2026-01-05', 'a.csv'))).toBe(1)
    expect(await read(join(usage, 'date=2026-01-06', 'link.csv'))).toBe(1)
    await expect(read(join(elsewhere, 'b.csv'))).rejects.toThrow('Permission Error')
    await expect(warehouse.connection.run('INSTALL httpfs')).rejects.toThrow('Permission Error')
  } finally {
    warehouse.close()
  }
})

it('a warehouse that is an SQLite database is rejected with the remedy, for reading and writing', async () => {
  const dataDir = makeFolder()
  using other = new DatabaseSync(join(dataDir, 'warehouse.duckdb'))
  other.exec('CREATE TABLE t (a)')
  const remedy = /^Cannot open the warehouse .*warehouse\.duckdb: .* npm run nightly -- rebuild/
  await expect(openWarehouse({ dataDir, memory: '1GB' })).rejects.toThrow(remedy)
  const reading = readWarehouse({ dataDir, memory: '1GB' }, async () => undefined)
  await expect(reading).rejects.toThrow(remedy)
})

/** Appends two numbers and a last one; returns the error message (the error would keep the appender alive). */
function failureOf(connection: DuckDBConnection, last: bigint | null): Promise<string> {
  return withAppender(connection, 'numbers', async (appender) => {
    for (const number of [1n, 2n, last]) {
      if (number === null) appender.appendNull()
      else appender.appendBigInt(number)
      appender.endRow()
    }
    if (last !== null) throw new Error('the cluster went away')
  }).then(String, String)
}

/** Also frees DuckDB's unused objects. */
async function collectGarbage(): Promise<void> {
  const session = new Session()
  session.connect()
  // Promises release objects after one turn of the event loop; finalizers run in another.
  for (let turn = 0; turn < 3; turn++) {
    await session.post('HeapProfiler.collectGarbage')
    await setImmediate()
  }
  session.disconnect()
}

it.each([
  ['the work fails', 7n, 'the cluster went away'],
  ['they cannot be written', null, 'NOT NULL constraint failed'],
])('when %s, no row reaches the next table of the same name', async (_, last, message) => {
  await withMemoryDatabase({ memory: '100MB', dataDir: tmpdir() }, async (connection) => {
    await connection.run('CREATE TEMP TABLE numbers (number BIGINT NOT NULL)')
    expect(await failureOf(connection, last)).toContain(message)
    await connection.run('CREATE OR REPLACE TEMP TABLE numbers (number BIGINT)')
    await collectGarbage()
    expect((await connection.runAndReadAll('FROM numbers')).getRowsJson()).toEqual([])
  })
})

it('what killed processes spilled is removed after a day, and what lives stays', async () => {
  const dataDir = makeFolder()
  for (const name of ['.spilled-old', '.spilled-young', '.other-old'])
    mkdirSync(join(dataDir, name, 'inside'), { recursive: true })
  const dayAgo = Date.now() / 1000 - 86_401
  for (const name of ['.spilled-old', '.other-old']) utimesSync(join(dataDir, name), dayAgo, dayAgo)
  await withMemoryDatabase({ memory: '100MB', dataDir }, async (connection) => {
    writeFileSync(await scratchPath(connection), 'mine')
    expect(readdirSync(dataDir)).toHaveLength(4)
  })
  const { close } = await openWarehouse({ dataDir, memory: '200MB' })
  close()
  expect(readdirSync(dataDir).toSorted()).toEqual(['.other-old', '.spilled-young', 'warehouse.duckdb'])
})
