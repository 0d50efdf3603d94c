/** Published files that were damaged on disk are named, reported and rebuilt. */
import { appendFileSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verify } from '../../../../pipeline/commands/verify.ts'
import { readConfig } from '../../../../pipeline/config.ts'
import { readVerification } from '../../../../pipeline/contract/verification.ts'
import { openWarehouse } from '../../../../pipeline/duckdb/warehouse.ts'
import { SILENT } from '../../../support/pipeline/in-process.ts'
import {
  TemporaryFolders,
  currentSnapshot,
  publish,
  runCommand,
  startCommand,
  writeRaw,
} from '../../../support/pipeline/nightly.ts'
import { FIRST, SECOND, publishTwice } from '../../../support/pipeline/published-twice.ts'

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
const FILES = [
  'app-rankings.duckdb',
  'rankings.parquet',
  'apps.csv',
  'app_daily/month=2026-01.parquet',
  'README.md',
  'SHA256SUMS',
]

describe('verify', () => {
  it('finds no fault in intact snapshots', async () => {
    expect(await runCommand(dataDir, 'verify', '--all')).toMatchObject({
      code: 0,
      stdout: '2 snapshots verified: 0 broken files\n',
    })
    expect(readVerification(dataDir)).toMatchObject({ broken: [], verified_at: expect.stringMatching(/Z$/) })
  })

  it.each(DAMAGES)(
    'names a file that is %s, in every file of a snapshot, and exits with 1',
    async (_how, damage, words) => {
      for (const file of FILES) damage(pathOf(SECOND, file))
      const ended = await runCommand(dataDir, 'verify')
      expect(ended.code).toBe(1)
      for (const file of FILES) {
        expect(ended.stdout).toMatch(new RegExp(`^snapshots/${SECOND}/${file} ${words.source}$`, 'm'))
      }
      expect(ended.stderr).toContain(`${FILES.length} published files broken`)
      const status = await runCommand(dataDir, 'status')
      if (status.code === 0) expect(status.stdout).toMatch(/^broken +\S+SHA256SUMS/m)
    },
  )

  it('verifies by the checksums without a record, and by the record without checksums', async () => {
    rmSync(pathOf('records', `${SECOND}.json`))
    flip(pathOf(SECOND, 'apps.csv'))
    expect((await runCommand(dataDir, 'verify', SECOND)).stdout).toContain('apps.csv has other bytes')
    rmSync(pathOf(SECOND, 'SHA256SUMS'))
    expect((await runCommand(dataDir, 'verify', SECOND)).stdout).toContain('SHA256SUMS cannot be read')
  })

  it('names a DuckDB file that was opened for writing', async () => {
    writeFileSync(pathOf(FIRST, 'app-rankings.duckdb.wal'), '')
    const { code, stdout } = await runCommand(dataDir, 'verify', FIRST)
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('was opened for writing after it was published'),
    ])
  })

  it('keeps known faults of other snapshots, and forgets repaired ones', async () => {
    const whole = readFileSync(pathOf(FIRST, 'apps.csv'))
    flip(pathOf(FIRST, 'apps.csv'))
    flip(pathOf(SECOND, 'apps.csv'))
    await runCommand(dataDir, 'verify', '--all')
    await runCommand(dataDir, 'verify', FIRST)
    const broken = () => readVerification(dataDir).broken.map(({ snapshot }) => snapshot)
    expect(broken().toSorted()).toEqual([FIRST, SECOND])
    writeFileSync(pathOf(FIRST, 'apps.csv'), whole)
    await runCommand(dataDir, 'verify', FIRST)
    expect(broken()).toEqual([SECOND])
  })

  it('sends one notice about damaged files', async () => {
    flip(pathOf(SECOND, 'apps.csv'))
    const sent: unknown[] = []
    const work = verify.prepare(['--all'])({
      config: readConfig({ DATA_DIR: dataDir, NOTICE_WEBHOOK: 'http://notices.example/' }),
      progress: SILENT,
      now: () => new Date('2026-01-09T03:00:00Z'),
      print: () => undefined,
      send: async (_url, body) => void sent.push(body),
    })
    await expect(work).rejects.toThrow('1 published file broken')
    expect(sent).toMatchObject([
      { event: 'broken', snapshot: SECOND, message: expect.stringContaining('apps.csv') },
    ])
  })

  it('prints JSON for machines', async () => {
    flip(pathOf(SECOND, 'apps.csv'))
    const { stdout } = await runCommand(dataDir, 'verify', '--all', '--json')
    const result = z
      .object({ verified: z.array(z.string()), broken: z.array(z.unknown()) })
      .parse(JSON.parse(stdout))
    expect(result).toMatchObject({
      verified: [FIRST, SECOND],
      broken: [{ snapshot: SECOND, file: 'apps.csv' }],
    })
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

  describe('with --repair', () => {
    const bytesOf = () =>
      new Map(FILES.map((file) => [file, readFileSync(join(published, 'snapshots', SECOND, file))]))

    it.each([
      ['the DuckDB file', FILES.filter((file) => file !== 'app-rankings.duckdb')],
      ['raw', FILES],
    ])('every file is rebuilt from %s, with the same bytes', async (_source, files) => {
      const whole = bytesOf()
      for (const file of files) flip(pathOf(SECOND, file))
      const ended = await runCommand(dataDir, 'verify', '--all', '--repair')
      expect(ended).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('2 snapshots verified: 0 broken files'),
      })
      for (const file of files) {
        expect(ended.stdout).toContain(`${SECOND}/${file} has other bytes than were published: mended`)
        expect(readFileSync(pathOf(SECOND, file)).equals(whole.get(file) ?? Buffer.alloc(0))).toBe(true)
      }
      expect(readVerification(dataDir).broken).toEqual([])
      expect(readdirSync(pathOf()).filter((name) => name.startsWith('.'))).toEqual([])
    })

    it('a file that cannot be rebuilt with the same bytes stays, and is named', async () => {
      const usage = join(dataDir, 'raw/usage/date=2026-01-06/rows.csv')
      writeFileSync(usage, readFileSync(usage, 'utf8').replace('20,0', '21,0'))
      for (const file of ['app-rankings.duckdb', 'apps.csv']) flip(pathOf(SECOND, file))
      const damaged = readFileSync(pathOf(SECOND, 'app-rankings.duckdb'))
      const { code, stdout } = await runCommand(dataDir, 'verify', SECOND, '--repair')
      expect(code).toBe(1)
      expect(stdout).toContain(`${SECOND}/app-rankings.duckdb has other bytes than were published\n`)
      expect(readFileSync(pathOf(SECOND, 'app-rankings.duckdb')).equals(damaged)).toBe(true)
      // The apps are unchanged.
      expect(stdout).toContain('apps.csv has other bytes than were published: mended')
    })

    it('a month that several snapshots share is repaired in each', async () => {
      const month = 'app_daily/month=2026-01.parquet'
      writeRaw(
        dataDir,
        'usage/date=2026-02-02/rows.csv',
        'ts,app_id,prompt_tokens,completion_tokens\n2026-02-02,1,1,0\n',
      )
      await publish(dataDir, '2026-02-03T02:00:00Z')
      const third = '20260203T020000Z'
      flip(pathOf(third, month))
      const ended = await runCommand(dataDir, 'verify', '--all', '--repair')
      expect(ended).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('3 snapshots verified: 0 broken files'),
      })
    })

    it('verify --repair exits with 75 during a run', async () => {
      flip(pathOf(SECOND, 'apps.csv'))
      const warehouse = await openWarehouse(dataDir, '1GB')
      const ended = await startCommand(dataDir, 'verify', '--repair').ended
      warehouse.close()
      expect(ended.code).toBe(75)
    })
  })

  it.each([
    [['20260101T000000Z'], 'There is no snapshot "20260101T000000Z"'],
    [[FIRST, '--all'], 'verify takes one snapshot, or --all'],
  ])('refuses %j', async (args, message) => {
    expect(await runCommand(dataDir, 'verify', ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    })
  })
})
