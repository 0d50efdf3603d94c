import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { clearLeft, withOwnPath } from '../../../pipeline/snapshot/own-files.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('a path in use is not cleared away, and is removed after the work', async () => {
  const folder = folders.make()
  await withOwnPath(folder, '.own-', async (path) => {
    writeFileSync(path, 'mine')
    clearLeft(folder, '.own-')
    expect(readdirSync(folder).filter((name) => name.startsWith('.own-'))).toEqual([path.split('/').at(-1)])
  })
  expect(readdirSync(folder)).toEqual([])
})

it('unused paths are cleared away, with or without a lock, and no other names', async () => {
  const folder = folders.make()
  mkdirSync(join(folder, '.own-1', 'inside'), { recursive: true })
  writeFileSync(join(folder, '.lock.own-1'), '')
  writeFileSync(join(folder, '.own-2'), '')
  writeFileSync(join(folder, '.lock.own-3'), '')
  writeFileSync(join(folder, '.other-1'), '')
  clearLeft(folder, '.own-')
  expect(readdirSync(folder)).toEqual(['.other-1'])
})

it('in a read-only folder the work goes on without a lock', async () => {
  expect(await withOwnPath('/proc', '.own-', async () => 'done')).toBe('done')
})
