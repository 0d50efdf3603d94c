/** CONTRACT 7: entries of the drop folder that are not files are reported before anything is read. */
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

it('the drop folder may contain files and links to files', () => {
  symlinkSync(join(day, 'a.csv'), join(day, 'link.csv'))
  expect(listUsageDays(rawFolder)[0]?.files.map(({ name }) => name)).toEqual([
    'usage/date=2026-01-06/a.csv',
    'usage/date=2026-01-06/link.csv',
  ])
})

it('endings in capitals are recognised', () => {
  writeFileSync(join(day, 'B.CSV.GZ'), gzipSync('ts\n'))
  expect(listUsageDays(rawFolder)[0]?.files[0]).toMatchObject({ format: 'csv', compression: 'gz' })
})

it('a replaced file is detected, even with the same size and modification time', () => {
  const path = join(day, 'a.csv')
  const other = join(rawFolder, 'other.csv')
  const write = (target: string, content: string) => {
    writeFileSync(target, content)
    utimesSync(target, 1_770_000_000, 1_770_000_000)
  }
  write(path, '1234')
  const before = fingerprintOf(listUsageDays(rawFolder)[0]?.files ?? [])
  const { ctimeNs } = statSync(path, { bigint: true })
  // The file system's clock advances in steps.
  do write(other, '5678')
  while (statSync(other, { bigint: true }).ctimeNs === ctimeNs)
  renameSync(other, path)
  expect(statSync(path).mtimeMs).toBe(1_770_000_000_000)
  expect(fingerprintOf(listUsageDays(rawFolder)[0]?.files ?? [])).not.toBe(before)
})

it.each([
  ['a folder', (path: string) => mkdirSync(path)],
  // Opening a named pipe waits for a writer, possibly for ever.
  ['a named pipe', (path: string) => execFileSync('mkfifo', [path])],
])('%s with the name of a usage file is rejected', (_kind, make) => {
  make(join(day, 'b.csv'))
  expect(() => listUsageDays(rawFolder)).toThrow('usage/date=2026-01-06/b.csv is not a readable file')
})

it('a broken link is named', () => {
  symlinkSync(join(day, 'gone'), join(day, 'b.csv'))
  expect(() => listUsageDays(rawFolder)).toThrow('usage/date=2026-01-06/b.csv does not exist')
})
