/** A disk that fills up in the middle of a night: a small one of its own, where the machine lets a test mount one. */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  TemporaryFolders,
  currentSnapshot,
  publish,
  queryCurrent,
  runCommand,
  writeRaw,
} from '../support/nightly.ts'

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

function deliver(day: string): void {
  const rows = Array.from(
    { length: APPS },
    (_, app) => `${day},${app + 1},${(app * 7919) % 10_007},${app % 13}`,
  )
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
}

/** Leaves so many bytes free. */
function fillUp(free: number): void {
  const { bavail, bsize } = statfsSync(dataDir)
  writeFileSync(join(dataDir, 'filler'), Buffer.alloc(Math.max(0, bavail * bsize - free), 1))
}

const runIf = it.runIf(mounted)

beforeAll(async () => {
  if (!mounted) return
  const apps = Array.from({ length: APPS }, (_, app) => `${app + 1},App ${app + 1},public,2025-01-01`)
  writeRaw(dataDir, 'apps/registry.csv', `app_id,app_name,visibility,updated_at\n${apps.join('\n')}\n`)
  deliver('2026-01-05')
  await publish(dataDir, '2026-01-06T02:00:00Z')
  deliver('2026-01-06')
})

// From nothing at all to room for a part of what a night writes: each stops the run at another place.
runIf.each([0, 300_000, 2_000_000, 4_000_000])(
  'with %i bytes free the run says so, and the next one is right',
  async (free) => {
    const before = currentSnapshot(dataDir)
    const bytes = readFileSync(join(before, 'app-rankings.duckdb'))
    fillUp(free)
    const ended = await runCommand(dataDir, 'run', '--as-of', '2026-01-07T02:00:00Z')
    rmSync(join(dataDir, 'filler'))
    expect(ended.stderr).toContain('There is no space left; free some and run again')
    expect(ended.stderr).toContain(dataDir)
    expect(ended.stderr).not.toMatch(/^\s+at /m)
    expect(ended.code).toBe(1)
    expect(currentSnapshot(dataDir)).toBe(before)
    expect(readFileSync(join(before, 'app-rankings.duckdb')).equals(bytes)).toBe(true)
  },
)

runIf('with room again everything is there', async () => {
  await publish(dataDir, '2026-01-07T02:00:00Z')
  expect(
    await queryCurrent(dataDir, 'SELECT day, count(*) AS apps FROM app_daily GROUP BY day ORDER BY day'),
  ).toEqual([
    { day: '2026-01-05', apps: String(APPS) },
    { day: '2026-01-06', apps: String(APPS) },
  ])
})
