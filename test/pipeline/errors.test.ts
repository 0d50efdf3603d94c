/** What the words of a fault say of the machine. */
import { expect, it } from 'vitest'
import { machineFault } from '../../pipeline/errors.ts'

it.each([
  'IO Error: Cannot open file "/data/warehouse.duckdb": Read-only file system',
  "EROFS: read-only file system, mkdir '/data/snapshots'",
])('of a disk that is read-only no right is said to be missing: %s', (words) => {
  expect(machineFault(new Error(words), '/data')?.message).toBe(
    `The file system is read-only; mount it so that it can be written, and run again (/data): ${words}`,
  )
})

it('a fault is not blamed on the warehouse for the words in a path', () => {
  const fault = new Error('IO Error: Cannot read "/data/corrupt/checksums/raw/usage": Input/output error')
  expect(machineFault(fault, '/data')).toBeUndefined()
})
