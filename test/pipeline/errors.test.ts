/** Machine faults are recognised by their messages. */
import { expect, it } from 'vitest'
import { machineFault } from '../../pipeline/errors.ts'

it.each([
  'IO Error: Cannot open file "/data/warehouse.duckdb": Read-only file system',
  "EROFS: read-only file system, mkdir '/data/snapshots'",
])('a read-only disk is not reported as a missing right: %s', (words) => {
  expect(machineFault(new Error(words), '/data')?.message).toBe(
    `The file system is read-only; mount it so that it can be written, and run again (/data): ${words}`,
  )
})

it('words in a path do not make an error a fault of the warehouse', () => {
  const fault = new Error('IO Error: Cannot read "/data/corrupt/checksums/raw/usage": Input/output error')
  expect(machineFault(fault, '/data')).toBeUndefined()
})
