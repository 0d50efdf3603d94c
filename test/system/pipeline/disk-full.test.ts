/** CONTRACT 9: a disk that fills up during a night. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { TemporaryFolders, currentSnapshot, startNightly } from '../../support/pipeline/nightly.ts'
import { REPOSITORY, startProcess } from '../../support/processes.ts'
import { mountSmallDisk } from '../../support/small-disk.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../../support/pipeline/two-nights.ts'

const SIZE = '48m'
const APPS = 20_000

const folders = new TemporaryFolders()
const dataDir = folders.make()
const disk = mountSmallDisk(dataDir, SIZE)

afterAll(() => {
  disk?.unmount()
  folders.removeAll()
})

const runIf = it.runIf(disk !== undefined)

beforeAll(async () => {
  if (disk !== undefined) await publishFirstNight(dataDir, APPS)
})

// From no space to space for a part of a night's data: each stops the run at another place.
runIf.each([0, 300_000, 2_000_000, 4_000_000])(
  'with %i bytes free the run reports the full disk, and the next one is correct',
  async (free) => {
    const before = currentSnapshot(dataDir)
    const bytes = readFileSync(join(before, 'app-rankings.duckdb'))
    disk?.fillUp(free)
    const ended = await startNightly(dataDir, '--as-of', SECOND_NIGHT).ended
    disk?.makeRoom()
    expect(ended.stderr).toMatch(/no space left on device/i)
    expect(ended.stderr).toContain(dataDir)
    expect(ended.stderr).not.toMatch(/^\s+at /m)
    expect(ended.code).toBeGreaterThan(0)
    expect(currentSnapshot(dataDir)).toBe(before)
    expect(readFileSync(join(before, 'app-rankings.duckdb')).equals(bytes)).toBe(true)
  },
)

runIf('with no free space a decision about an app reports the full disk', async () => {
  disk?.fillUp()
  const command = [join(REPOSITORY, 'pipeline', 'apps.ts'), 'hide', '1', '--reason', 'test']
  const ended = await startProcess(process.execPath, command, { environment: { DATA_DIR: dataDir } }).ended
  disk?.makeRoom()
  expect(ended.stdout).toBe('')
  expect(ended.stderr).toMatch(/^[^\n]*(?:no space left on device|disk is full)[^\n]*\n$/)
  expect(ended.code).toBeGreaterThan(0)
})

runIf('with free space again all data is published, and the run warns that few such nights fit', async () => {
  expect(await expectSecondNight(dataDir, APPS)).toMatch(
    /^The disk has room for \d more snapshots? of [\d.]+ MB: set RETENTION_DAYS/m,
  )
})
