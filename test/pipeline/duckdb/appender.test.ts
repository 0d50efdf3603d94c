/** Rows that an appender could not write never reach a later table of the same name. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { withMemoryDatabase } from '../../../pipeline/duckdb/memory-database.ts'
import { withAppender } from '../../../pipeline/duckdb/statements.ts'
import { collectGarbage } from '../../support/garbage.ts'

const makeTable = (connection: DuckDBConnection, column: string) =>
  connection.run(`CREATE OR REPLACE TEMP TABLE numbers (number ${column})`)

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

it.each([
  ['the work fails', 7n, 'the cluster went away'],
  ['they cannot be written', null, 'NOT NULL constraint failed'],
])('when %s, no row reaches the next table of the same name', async (_, last, message) => {
  await withMemoryDatabase({ memory: '100MB', dataDir: tmpdir() }, async (connection) => {
    await makeTable(connection, 'BIGINT NOT NULL')
    expect(await failureOf(connection, last)).toContain(message)
    await makeTable(connection, 'BIGINT')
    await collectGarbage()
    expect((await connection.runAndReadAll('FROM numbers')).getRowsJson()).toEqual([])
  })
})
