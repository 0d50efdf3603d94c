import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import { Checkpoints } from '../../../api/store/checkpoints.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { until } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const PAGE_BYTES = 4096
/** As many statements as call for a checkpoint. */
const ENOUGH = 500

/** A file that SQLite itself never makes a checkpoint of, with a way to write so many pages into its log. */
function openFile() {
  const path = join(folders.make(), 'a.sqlite')
  const database = new DatabaseSync(path, { timeout: 60_000 })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (bytes BLOB)')
  const insert = database.prepare('INSERT INTO t VALUES (zeroblob(?))')
  return {
    path,
    database,
    writePages: (pages: number) => insert.run(pages * PAGE_BYTES),
    pagesInPlace: () => statSync(path).size / PAGE_BYTES,
    pagesOfLog: () => statSync(`${path}-wal`).size / PAGE_BYTES,
  }
}

it('moves the log to its place once enough was written, beside whoever waits for nothing', async () => {
  const { path, database, writePages, pagesInPlace } = openFile()
  const checkpoints = new Checkpoints(path)
  writePages(50)
  checkpoints.note(ENOUGH - 1)
  expect(pagesInPlace()).toBeLessThan(50)
  checkpoints.note(1)
  await until(() => pagesInPlace() > 50)
  await checkpoints.close()
  database.close()
})

it('begins a long log anew', async () => {
  const { path, database, writePages, pagesInPlace, pagesOfLog } = openFile()
  const checkpoints = new Checkpoints(path)
  let written = 0
  for (let round = 0; round < 4; round += 1) {
    writePages(4500)
    written += 4500
    // Asked again until the thread has done what it was at.
    await until(() => {
      checkpoints.note(ENOUGH)
      return pagesInPlace() > written
    })
  }
  await checkpoints.close()
  // The thread may begin it anew a round late.
  expect(pagesOfLog()).toBeLessThan(0.75 * written)
  database.close()
})

it('ends the thread, so that the last connection clears the log away', async () => {
  const { path, database, writePages, pagesInPlace } = openFile()
  const checkpoints = new Checkpoints(path)
  writePages(50)
  checkpoints.note(ENOUGH)
  await checkpoints.close()
  expect(pagesInPlace()).toBeGreaterThan(50)
  database.close()
  expect(existsSync(`${path}-wal`)).toBe(false)
})

it('holds up nobody where the file cannot be opened, and is closed as always', async () => {
  const checkpoints = new Checkpoints(join(folders.make(), 'missing', 'a.sqlite'))
  checkpoints.note(ENOUGH)
  checkpoints.note(ENOUGH)
  await checkpoints.close()
  await checkpoints.close()
})

it('are made of a store that counts requests', async () => {
  const dataDir = folders.make()
  const store = await openStore({ DATA_DIR: dataDir }, new Date())
  await store.script('CREATE TABLE t (bytes BLOB)')
  const path = join(dataDir, 'service.sqlite')
  const before = statSync(path).size
  await store.atOnce?.('write', (run) => {
    for (let statement = 0; statement < ENOUGH; statement += 1)
      run('INSERT INTO t VALUES (zeroblob(4096))', [])
  })
  await until(() => statSync(path).size > before + ENOUGH * PAGE_BYTES)
  await store.close()
  expect(existsSync(`${path}-wal`)).toBe(false)
})
