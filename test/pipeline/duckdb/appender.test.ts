/** Rows that could not be appended are nowhere, whatever table has the name of theirs by then. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { withMemoryDatabase } from '../../../pipeline/duckdb/memory-database.ts'
import { withAppender } from '../../../pipeline/duckdb/appender.ts'
import { collectGarbage } from '../../support/garbage.ts'

const makeTable = (connection: DuckDBConnection, column: string) =>
  connection.run(`CREATE OR REPLACE TEMP TABLE numbers (number ${column})`)

/** Appends two numbers and a last one; gives what that fails with. The error itself would hold on to the appender. */
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
])('when %s, none comes into the next table of the name', async (_, last, message) => {
  await withMemoryDatabase({ memory: '100MB', dataDir: tmpdir() }, async (connection) => {
    await makeTable(connection, 'BIGINT NOT NULL')
    expect(await failureOf(connection, last)).toContain(message)
    await makeTable(connection, 'BIGINT')
    await collectGarbage()
    expect((await connection.runAndReadAll('FROM numbers')).getRowsJson()).toEqual([])
  })
})
