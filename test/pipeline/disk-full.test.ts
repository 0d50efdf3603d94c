/** A disk that fills up in the middle of a night: a small one of its own, where the machine lets a test mount one. */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { TemporaryFolders, currentSnapshot, runNightly } from '../support/nightly.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../support/two-nights.ts'

const SIZE = '48m'
const APPS = 20_000

const folders = new TemporaryFolders()
const dataDir = folders.make()
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', dataDir]).status === 0
if (!mounted) process.stderr.write('No disk can be mounted here: the test of a full one is skipped\n')

afterAll(() => {
  if (mounted) spawnSync('umount', ['-l', dataDir])
  folders.removeAll()
})

/** Leaves so many bytes free. */
function fillUp(free: number): void {
  const { bavail, bsize } = statfsSync(dataDir)
  writeFileSync(join(dataDir, 'filler'), Buffer.alloc(Math.max(0, bavail * bsize - free), 1))
}

const runIf = it.runIf(mounted)

beforeAll(async () => {
  if (mounted) await publishFirstNight(dataDir, APPS)
})

// From nothing at all to room for a part of what a night writes: each stops the run at another place.
runIf.each([0, 300_000, 2_000_000, 4_000_000])(
  'with %i bytes free the run says so, and the next one is right',
  async (free) => {
    const before = currentSnapshot(dataDir)
    const bytes = readFileSync(join(before, 'app-rankings.duckdb'))
    fillUp(free)
    const ended = await runNightly(dataDir, '--as-of', SECOND_NIGHT)
    rmSync(join(dataDir, 'filler'))
    expect(ended.stderr).toContain('There is no space left; free some and run again')
    expect(ended.stderr).toContain(dataDir)
    expect(ended.stderr).not.toMatch(/^\s+at /m)
    expect(ended.code).toBe(1)
    expect(currentSnapshot(dataDir)).toBe(before)
    expect(readFileSync(join(before, 'app-rankings.duckdb')).equals(bytes)).toBe(true)
  },
)

runIf('with room again everything is there', () => expectSecondNight(dataDir, APPS))
