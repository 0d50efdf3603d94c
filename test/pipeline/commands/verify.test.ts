/** CONTRACT 9: `verify`: published files that were damaged on disk are named. */
import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { TemporaryFolders, currentSnapshot, runCommand } from '../../support/pipeline/nightly.ts'
import { FIRST, SECOND, publishTwice } from '../../support/pipeline/published-twice.ts'

const folders = new TemporaryFolders()
const published = folders.make()
let dataDir = ''

beforeAll(() => publishTwice(published))
beforeEach(() => {
  dataDir = folders.copy(published)
})
afterAll(() => folders.removeAll())

const pathOf = (...parts: readonly string[]) => join(dataDir, 'snapshots', ...parts)

/** Changes one byte in the middle of a file. */
function flip(path: string): void {
  const bytes = readFileSync(path)
  const middle = Math.floor(bytes.length / 2)
  bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle)
  writeFileSync(path, bytes)
}

/** Ways to damage a file, and the reported fault. */
const DAMAGES: readonly (readonly [string, (path: string) => void, RegExp])[] = [
  ['cut', (path) => truncateSync(path, 10), /has 10 bytes, but \d+ were published/],
  ['longer', (path) => appendFileSync(path, 'x'), /has \d+ bytes, but \d+ were published/],
  ['changed', flip, /has other bytes than were published/],
  ['gone', (path) => rmSync(path), /is missing/],
]
const FILES = ['app-rankings.duckdb', 'apps.csv', 'app_daily/month=2026-01.parquet', 'SHA256SUMS']

it('verify finds no fault in intact snapshots', async () => {
  expect(await runCommand(dataDir, 'verify', '--all')).toMatchObject({
    code: 0,
    stdout: '2 snapshots verified: 0 published files broken\n',
  })
})

it.each(DAMAGES)('verify names each file that is %s, and exits with 1', async (_how, damage, words) => {
  for (const file of FILES) damage(pathOf(SECOND, file))
  const ended = await runCommand(dataDir, 'verify')
  expect(ended.code).toBe(1)
  for (const file of FILES) {
    expect(ended.stdout).toMatch(new RegExp(`^snapshots/${SECOND}/${file} ${words.source}$`, 'm'))
  }
  expect(ended.stderr).toContain('4 published files broken. Restore them from a backup')
})

it('verify names a DuckDB file that was opened for writing, and a record that cannot be read', async () => {
  writeFileSync(pathOf(FIRST, 'app-rankings.duckdb.wal'), '')
  writeFileSync(pathOf('records', `${SECOND}.json`), '{')
  const { code, stdout } = await runCommand(dataDir, 'verify', '--all', '--json')
  expect([code, JSON.parse(stdout)]).toEqual([
    1,
    {
      verified: [FIRST, SECOND],
      broken: [
        expect.stringContaining(`${FIRST}/app-rankings.duckdb was opened for writing`),
        `snapshots/records/${SECOND}.json cannot be read`,
      ],
    },
  ])
})

it('the next run repairs a missing pointer to the newest complete snapshot, even if the run fails', async () => {
  rmSync(join(dataDir, 'current'))
  const status = await runCommand(dataDir, 'status')
  expect(status.stdout).toContain(`current leads to no snapshot, though ${SECOND} is there`)
  truncateSync(pathOf(SECOND, 'app-rankings.duckdb'), 10)
  const { code, stderr } = await runCommand(dataDir, 'run', '--as-of', '2026-01-09T02:00:00Z')
  expect(code).toBe(1)
  expect(stderr).toContain(`current led to no snapshot; it leads to ${FIRST}, the newest whole one`)
  expect(currentSnapshot(dataDir)).toContain(FIRST)
})

it.each([
  [['20260101T000000Z'], 'There is no snapshot "20260101T000000Z"'],
  [[FIRST, '--all'], 'verify takes one snapshot, or --all'],
])('verify %j ends with 2 and names the remedy', async (args, message) => {
  expect(await runCommand(dataDir, 'verify', ...args)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(message),
  })
})
