/** CONTRACT 9: temporary files of a killed process do not stay. */
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { clearLeft, ownPath } from '../../../pipeline/snapshot/own-files.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('a path in use is not cleared away, and is removed after the work', () => {
  const folder = folders.make()
  {
    using own = ownPath(folder, '.own-')
    writeFileSync(own.path, 'mine')
    clearLeft(folder, '.own-')
    expect(readdirSync(folder)).toHaveLength(1)
  }
  expect(readdirSync(folder)).toEqual([])
})

it('paths that have not changed for a day are cleared away, and no other names', () => {
  const folder = folders.make()
  mkdirSync(join(folder, '.own-1', 'inside'), { recursive: true })
  writeFileSync(join(folder, '.own-2'), '')
  writeFileSync(join(folder, '.other-1'), '')
  const dayAgo = Date.now() / 1000 - 86_401
  for (const name of readdirSync(folder)) utimesSync(join(folder, name), dayAgo, dayAgo)
  clearLeft(folder, '.own-')
  expect(readdirSync(folder)).toEqual(['.other-1'])
})
