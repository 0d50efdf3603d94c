/** CONTRACT 9: a disk that fills up during a night, and while the API serves. */
import { spawnSync } from 'node:child_process'
import { lstatSync, readFileSync, readdirSync, rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startApi } from '../support/api.ts'
import { makeFolder } from '../support/folders.ts'
import { LONG } from '../support/long.ts'
import { currentSnapshot, deliver, register, startNightly } from '../support/pipeline/nightly.ts'
import { startProgram } from '../support/processes.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../support/pipeline/two-nights.ts'

const APPS = 20_000
const MINUTES = 15

const dataDir = makeFolder()
// DATA_DIR is a disk of its own, on machines that allow a test to mount one.
const isMounted =
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', dataDir], { stdio: 'ignore' }).status === 0
if (!isMounted) process.stderr.write('No disk can be mounted here: the tests of a full one are skipped\n')
const runIf = it.runIf(isMounted)

beforeAll(async () => {
  if (isMounted) await publishFirstNight(dataDir, APPS)
}, LONG.timeout)

afterAll(() => {
  spawnSync('umount', ['-l', dataDir])
})

const filler = join(dataDir, 'filler')

/** Fills the disk up to this many free bytes. */
function fillUp(free = 0): void {
  const { bavail, bsize } = statfsSync(dataDir)
  writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - free), 1))
}

// From no space to space for a part of a night's data: each stops the run at another place.
runIf.each([0, 300_000, 2_000_000, 4_000_000])(
  'with %i bytes free the run reports the full disk, and the snapshot stays whole',
  async (free) => {
    const before = currentSnapshot(dataDir)
    const bytes = readFileSync(join(before, 'app-rankings.duckdb'))
    fillUp(free)
    const ended = await startNightly(dataDir, 'run', '--as-of', SECOND_NIGHT).ended
    rmSync(filler)
    expect(ended.stderr).toMatch(/no space left on device.*\. Free some; npm run nightly -- prune /i)
    expect(ended.stderr).toContain(dataDir)
    expect(ended.stderr).not.toMatch(/^\s+at /m)
    expect(ended.code).toBeGreaterThan(0)
    expect(currentSnapshot(dataDir)).toBe(before)
    expect(readFileSync(join(before, 'app-rankings.duckdb')).equals(bytes)).toBe(true)
  },
)

runIf('with no free space a decision about an app reports the full disk', async () => {
  fillUp()
  const hide = ['hide', '1', '--reason', 'test']
  const ended = await startProgram('pipeline/apps.ts', hide, { DATA_DIR: dataDir }).ended
  rmSync(filler)
  expect(ended.stdout).toBe('')
  expect(ended.stderr).toMatch(/^[^\n]*(?:no space left on device|disk is full)[^\n]*\n$/)
  expect(ended.code).toBeGreaterThan(0)
})

runIf('a first run without free space leaves no warehouse that stops the next one', async () => {
  const fresh = join(dataDir, 'fresh')
  register(fresh, ['1,One,public,,,2026-01-01T00:00:00Z'])
  deliver(fresh, '2026-01-05', ['1,2,3'])
  const warehouse = join(fresh, 'warehouse.duckdb')
  symlinkSync(join(fresh, 'elsewhere.duckdb'), warehouse)
  fillUp()
  const stopped = await startNightly(fresh, 'run', '--as-of', SECOND_NIGHT).ended
  rmSync(filler)
  expect(stopped.stderr).toMatch(/no space left on device/i)
  expect(readdirSync(fresh)).not.toContain('elsewhere.duckdb')
  const ended = await startNightly(fresh, 'run', '--as-of', SECOND_NIGHT).ended
  expect(lstatSync(warehouse).isSymbolicLink()).toBe(true)
  rmSync(fresh, { recursive: true })
  expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining('is current')])
})

runIf('with free space again all data is published, and the run warns that few such nights fit', async () => {
  expect(await expectSecondNight(dataDir, APPS)).toMatch(
    /^The disk has room for \d more snapshots? of [\d.]+ MB: set RETENTION_DAYS/m,
  )
})

runIf('with no free space prune removes snapshots', async () => {
  fillUp()
  const pruned = await startNightly(dataDir, 'prune', '--keep-days', '0').ended
  rmSync(filler)
  expect(pruned).toMatchObject({ code: 0, stdout: expect.stringContaining('1 snapshot removed') })
})

runIf('the service serves and counts as before', async () => {
  let now = new Date('2026-11-20T03:00:00Z')
  await using api = await startApi(dataDir, { clock: () => now })
  const key = await api.makeKey()
  /** Status of a reply, and the rest of the minute. */
  const ask = async () => {
    const { status, headers } = await api.get('/datasets/app-rankings', key)
    return [status, Number(/"per-minute";r=(\d+)/.exec(headers.get('RateLimit') ?? '')?.[1])]
  }
  expect(await ask()).toEqual([200, 29])

  fillUp()
  // A WAL checkpoint waits while another process reads the WAL.
  const reader = new DatabaseSync(join(dataDir, 'service.sqlite'))
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM quotas').get()
  setTimeout(() => reader.close(), 200)
  for (let rest = 28; rest >= 2; rest -= 1) expect(await ask()).toEqual([200, rest])

  // Lines without space are reported, and block nobody.
  const large = api.store.query('CREATE TABLE large AS SELECT randomblob(40000000) AS bytes')
  await expect(large).rejects.toThrow('full')
  for (let minute = 1; minute <= MINUTES; minute += 1) {
    now = new Date(now.getTime() + 60_000)
    for (let rest = 29; rest >= 0; rest -= 1) expect(await ask()).toEqual([200, rest])
    expect((await ask())[0]).toBe(429)
  }
  now = new Date(now.getTime() + 60_000)
  const { headers } = await api.get('/datasets/app-rankings', key)
  expect(headers.get('RateLimit')).toContain('"per-day";r=21;')
})
