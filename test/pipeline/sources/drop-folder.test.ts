/** What lies in the drop folder and is no file: named before anything is read of it. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { fingerprintOf, listUsageDays } from '../../../pipeline/sources/drop-folder.ts'
import { TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let rawFolder = ''
let day = ''

beforeEach(() => {
  const dataDir = folders.make()
  rawFolder = join(dataDir, 'raw')
  day = join(rawFolder, 'usage/date=2026-01-06')
  writeRaw(dataDir, 'usage/date=2026-01-06/a.csv', 'ts,app_id,prompt_tokens,completion_tokens\n')
})

it('takes a file, and a link to one', () => {
  symlinkSync(join(day, 'a.csv'), join(day, 'link.csv'))
  expect(listUsageDays(rawFolder)[0]?.files.map(({ name }) => name)).toEqual([
    'usage/date=2026-01-06/a.csv',
    'usage/date=2026-01-06/link.csv',
  ])
})

it('knows endings in capitals', () => {
  writeFileSync(join(day, 'B.CSV.GZ'), gzipSync('ts\n'))
  expect(listUsageDays(rawFolder)[0]?.files[0]).toMatchObject({ format: 'csv', compression: 'gz' })
})

it('knows a file from one of the same size and modification time that took its place', () => {
  const path = join(day, 'a.csv')
  const other = join(rawFolder, 'other.csv')
  const write = (target: string, content: string) => {
    writeFileSync(target, content)
    utimesSync(target, 1_770_000_000, 1_770_000_000)
  }
  write(path, '1234')
  const before = fingerprintOf(listUsageDays(rawFolder)[0]?.files ?? [])
  const { ctimeNs } = statSync(path, { bigint: true })
  // The clock of the file system moves on in steps.
  do write(other, '5678')
  while (statSync(other, { bigint: true }).ctimeNs === ctimeNs)
  renameSync(other, path)
  expect(statSync(path).mtimeMs).toBe(1_770_000_000_000)
  expect(fingerprintOf(listUsageDays(rawFolder)[0]?.files ?? [])).not.toBe(before)
})

it.each([
  ['a folder', (path: string) => mkdirSync(path)],
  // Whoever opens it waits for somebody to write into it, for good where nobody does.
  ['a named pipe', (path: string) => execFileSync('mkfifo', [path])],
])('refuses %s with the name of a file', (_kind, make) => {
  make(join(day, 'b.csv'))
  expect(() => listUsageDays(rawFolder)).toThrow('usage/date=2026-01-06/b.csv is not a readable file')
})

it('names a link that leads nowhere', () => {
  symlinkSync(join(day, 'gone'), join(day, 'b.csv'))
  expect(() => listUsageDays(rawFolder)).toThrow('usage/date=2026-01-06/b.csv does not exist')
})
