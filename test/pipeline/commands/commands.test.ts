/** CONTRACT 9: the commands of `npm run nightly` beside the run itself. */
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { prune, superfluousSnapshots } from '../../../pipeline/commands/prune.ts'
import { run } from '../../../pipeline/commands/run.ts'
import { pipelineSettings, readConfig } from '../../../pipeline/config.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { SILENT } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, runCommand, startNightly, writeRaw } from '../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../support/pipeline/snapshot.ts'
import { APPS_HEADER, FIRST, SECOND, jsonOf, publishTwice } from '../../support/pipeline/published-twice.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()

beforeAll(() => publishTwice(dataDir))
afterAll(() => folders.removeAll())

const json = (...args: readonly string[]) => jsonOf(dataDir, ...args)

describe('status', () => {
  it('shows what is published and which days are missing', async () => {
    expect(await json('status')).toMatchObject({
      current: SECOND,
      as_of: '2026-01-08T02:00:00Z',
      first_day: '2026-01-04',
      data_through: '2026-01-07',
      apps: 2,
      app_days: 6,
      days_missing: ['2026-01-05'],
      days_partial: [],
      // The registry changed, not the figures.
      days_restated: [],
      snapshots: 2,
      retracted: [],
    })
  })

  it('shows how old the data is, and joins consecutive days', async () => {
    const old = folders.make()
    await publishSnapshot(old, {
      asOf: new Date('2026-01-20T02:00:00Z'),
      firstDay: '2026-01-01',
      dataThrough: '2026-01-10',
      apps: [],
      daily: [],
      missing: ['2026-01-03', '2026-01-04', '2026-01-05', '2026-01-08'],
    })
    const { stdout } = await runCommand(old, 'status')
    expect(stdout).toMatch(/^age {11}\d+ completed days not in the data: deliver their usage/m)
    expect(stdout).toContain('missing       4 days: 2026-01-03 to 2026-01-05, 2026-01-08\n')
    const behind = (Date.now() - Date.parse('2026-01-12')) / 86_400_000
    expect(JSON.parse((await runCommand(old, 'status', '--json')).stdout)).toMatchObject({
      days_behind: Math.floor(behind) + 1,
    })
  })

  it('reports that nothing is published yet', async () => {
    const ended = await runCommand(folders.make(), 'status')
    expect(ended).toMatchObject({ code: 0, stdout: 'Nothing is published yet\n' })
  })
})

describe('how the last run ended', () => {
  it('is shown by status: the reason of a block, later the published snapshot', async () => {
    const copy = folders.make()
    cpSync(join(dataDir, 'raw'), join(copy, 'raw'), { recursive: true })
    writeRaw(copy, 'usage/date=2026-01-05/rows.csv', 'ts,app_id\n')
    expect((await runCommand(copy, 'run', '--as-of', '2026-01-08T02:00:00Z')).code).toBe(1)
    const failed = await runCommand(copy, 'status')
    expect(failed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Nothing is published yet\n/) })
    expect(failed.stdout).toMatch(
      /^last run      \S+Z failed: usage\/date=2026-01-05\/rows.csv has no column/m,
    )

    writeRaw(copy, 'usage/date=2026-01-05/rows.csv', 'ts,app_id,prompt_tokens,completion_tokens\n')
    expect((await runCommand(copy, 'run', '--as-of', '2026-01-08T02:00:00Z')).code).toBe(0)
    const { stdout } = await runCommand(copy, 'status', '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      current: SECOND,
      last_run: { outcome: 'published', snapshot: SECOND, message: null },
    })
  })

  it('is shown with all lines of its message, the later ones indented', async () => {
    const copy = folders.make()
    const lastRun = {
      finished_at: '2026-01-08T02:00:09Z',
      outcome: 'blocked',
      snapshot: null,
      message: 'A:\n  b\n  c',
    }
    writeFileSync(join(copy, 'last-run.json'), JSON.stringify(lastRun))
    const under = ' '.repeat('last run      '.length)
    expect((await runCommand(copy, 'status')).stdout).toBe(
      `Nothing is published yet\nlast run      2026-01-08T02:00:09Z blocked: A:\n${under}  b\n${under}  c\n`,
    )
  })

  it('is not recorded by a run that is locked out, and is left out if unreadable', async () => {
    const copy = folders.make()
    writeFileSync(join(copy, 'last-run.json'), '{"half')
    expect(await runCommand(copy, 'status')).toMatchObject({ code: 0, stdout: 'Nothing is published yet\n' })
    const held = await openWarehouse(copy, '1GB')
    expect((await startNightly(copy).ended).code).toBe(75)
    held.close()
    expect(readFileSync(join(copy, 'last-run.json'), 'utf8')).toBe('{"half')
  })
})

describe('quarantine', () => {
  const bad = (count: number) => '2026-01-04T00:00:00Z,1,-5,0\n'.repeat(count)
  const long = `2026-01-04T00:00:00Z,1,-${'5'.repeat(200)},0\n`

  it('lists rejected rows with file, row, reason and content, of one day or all days', async () => {
    const copy = folders.make()
    writeRaw(copy, 'apps/registry.csv', `${APPS_HEADER}1,One,public,2025-01-01\n`)
    const header = 'ts,app_id,prompt_tokens,completion_tokens\n'
    writeRaw(copy, 'usage/date=2026-01-04/rows.csv', `${header}${bad(1)}`)
    expect((await runCommand(copy, 'run', '--as-of', '2026-01-05T02:00:00Z')).stderr).toContain(
      'npm run nightly -- quarantine 2026-01-04 lists the rejected rows',
    )
    const { code, stdout } = await runCommand(copy, 'quarantine', '2026-01-04')
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(
        /^2026-01-04  usage\/date=2026-01-04\/rows.csv +2 +1  prompt_tokens is not an integer, 0 or more +\{"ts":"2026-01-04T00:00:00Z","app_id":"1","prompt_tokens":"-5"/m,
      ),
    ])
    const all = await runCommand(copy, 'quarantine', '--json')
    expect(JSON.parse(all.stdout)).toMatchObject({
      rejected: [{ day: '2026-01-04', file: 'usage/date=2026-01-04/rows.csv', row: '2', rows: 1 }],
    })
    expect((await runCommand(copy, 'quarantine', '2026-01-03')).stdout).toBe('No row is rejected\n')

    writeRaw(copy, 'usage/date=2026-01-04/rows.csv', `${header}${long}${bad(59)}`)
    await runCommand(copy, 'run', '--as-of', '2026-01-05T02:00:00Z')
    const { stdout: many } = await runCommand(copy, 'quarantine')
    expect(many).toMatch(/ 2 +1  prompt_tokens .* \{"ts":.{114}… *\n2026-01-04 .* 3 +1  prompt_tokens /)
    expect(many).toMatch(/\(50 rows\)\nand 10 more rows; --json lists them all\n$/)
  })

  it('lists nothing before the first run, and rejects an argument that is not a day', async () => {
    expect(await runCommand(folders.make(), 'quarantine')).toMatchObject({ stdout: 'No row is rejected\n' })
    expect(await runCommand(dataDir, 'quarantine', 'today')).toMatchObject({
      code: 2,
      stderr: '"today" is not a day: expected YYYY-MM-DD\n',
    })
    expect((await runCommand(dataDir, 'quarantine', '2026-01-04', '2026-01-05')).code).toBe(2)
  })
})

it.each(['plan', 'quarantine'])(
  '%s treats a warehouse without tables, left by a killed first run, as none',
  async (command) => {
    const copy = folders.make()
    const none = await runCommand(copy, command)
    const instance = await DuckDBInstance.create(join(copy, 'warehouse.duckdb'))
    instance.closeSync()
    expect(none.code).toBe(0)
    expect(await runCommand(copy, command)).toEqual(none)
  },
)

describe('run --as-of', () => {
  const now = new Date('2026-01-08T12:00:00Z')

  /** The messages of a run at TIME, without its stages, started at `now`. */
  async function notesAt(time: string): Promise<string[]> {
    const ahead = folders.make()
    cpSync(join(dataDir, 'raw'), join(ahead, 'raw'), { recursive: true })
    const notes: string[] = []
    await run.prepare(['--as-of', time])({
      config: readConfig({ DATA_DIR: ahead }),
      progress: { ...SILENT, note: (text) => void notes.push(text) },
      now: () => now,
      print: () => undefined,
    })
    return notes
  }

  it('explains a time in the future, and the remedy', async () => {
    expect(await notesAt('2026-01-09T02:00:00Z')).toEqual([
      '--as-of 2026-01-09T02:00:00Z is later than the clock: the days through 2026-01-08 are published as completed, ' +
        'and later runs fail until the clock reaches that time. To undo it, retract the snapshot: ' +
        'npm run nightly -- retract ID --reason TEXT',
    ])
  })

  it('says nothing about a time in the past', async () => {
    expect(await notesAt(now.toISOString())).toEqual([])
  })
})

describe('plan', () => {
  it('lists the days that a run would read or forget, and writes nothing', async () => {
    const planned = folders.make()
    writeRaw(planned, 'usage/date=2026-01-06/a.csv', '')
    writeRaw(planned, 'usage/date=2024-12-31/a.csv', '')
    writeRaw(planned, 'usage/date=2026-01-09/a.csv', '')
    const args = ['run', '--dry-run', '--json', '--as-of', '2026-01-09T12:00:00Z']
    const { stdout } = await runCommand(planned, ...args)
    expect(JSON.parse(stdout)).toEqual({
      current: null,
      read: [{ day: '2026-01-06', files: ['usage/date=2026-01-06/a.csv'] }],
      forget: [],
      unchanged: 0,
      left: 0,
      before_floor: 1,
      not_completed: 1,
    })
    expect(readdirSync(planned)).toEqual(['raw'])
  })

  it('prints lines about the days to read and forget, and when a run would publish', async () => {
    const { stdout } = await runCommand(dataDir, 'plan')
    expect(stdout).toMatch(
      new RegExp(
        `^current snapshot: ${SECOND}\n0 days to read, 0 to forget, 3 unchanged, .*\nA run would publish only if `,
      ),
    )
    const copy = folders.make()
    cpSync(dataDir, copy, { recursive: true })
    rmSync(join(copy, 'raw/usage/date=2026-01-04'), { recursive: true })
    expect((await runCommand(copy, 'plan', '--from', '2026-01-04', '--to', '2026-01-06')).stdout).toBe(
      `current snapshot: ${SECOND}\n` +
        '1 day to read, 1 to forget, 0 unchanged, 1 left for the next full run, 0 before the floor, 0 not over yet\n' +
        '  read    2026-01-06: 1 file\n' +
        '  forget  2026-01-04: its files are gone\n' +
        'A run would publish if the figures of these days, the registry or the credit lines changed\n',
    )
  })

  it('names a DATA_DIR that does not exist', async () => {
    const missing = join(folders.make(), 'missing')
    const ended = await runCommand(missing, 'plan')
    expect(ended).toMatchObject({ code: 2, stderr: `DATA_DIR ${missing} does not exist\n` })
  })

  it('knows the counted days', async () => {
    expect(await json('plan')).toMatchObject({ current: SECOND, read: [], unchanged: 3 })
  })
})

it('a service on another port publishes nothing new', async () => {
  vi.stubEnv('PORT', '4711')
  const ended = await runCommand(folders.copy(dataDir), 'run', '--as-of', '2026-01-09T02:00:00Z')
  vi.unstubAllEnvs()
  expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing new is published') })
})

describe('superfluousSnapshots', () => {
  const ids = [
    '20260130T020000Z',
    '20260131T020000Z',
    '20260201T020000Z',
    '20260202T020000Z',
    '20260203T020000Z',
  ]

  it('are old, not the last of their month, and not current', () => {
    const rules = { oldestKept: '2026-02-03', current: '20260202T020000Z' }
    expect(superfluousSnapshots(ids, rules)).toEqual(['20260130T020000Z', '20260201T020000Z'])
  })

  it('are none while all snapshots are young', () => {
    expect(superfluousSnapshots(ids, { oldestKept: '2026-01-30', current: undefined })).toEqual([])
  })
})

describe('prune', () => {
  it.each([
    ['0', '2026-01-09T02:00:00Z', undefined],
    ['1', '2026-01-09T02:00:00Z', [SECOND, 'records']],
    ['2', '2026-01-09T02:00:00Z', [FIRST, SECOND, 'records']],
    ['', '2026-01-09T02:00:00Z', [FIRST, SECOND, 'records']],
  ])('with RETENTION_DAYS "%s" a run at %s leaves %j', async (days, at, left) => {
    const environment = { DATA_DIR: folders.copy(dataDir), RETENTION_DAYS: days }
    if (left === undefined) return expect(() => readConfig(environment)).toThrow('RETENTION_DAYS')
    await run.prepare(['--as-of', at])({
      config: readConfig(environment),
      progress: SILENT,
      now: () => new Date(at),
      print: () => undefined,
    })
    expect(readdirSync(join(environment.DATA_DIR, 'snapshots')).toSorted()).toEqual(left)
  })

  it('with --dry-run lists snapshots, without it removes exactly these', async () => {
    const tried = await json('prune', '--keep-days', '0', '--dry-run')
    expect(tried).toEqual({ removed: [FIRST], dry_run: true })
    expect(existsSync(join(dataDir, 'snapshots', FIRST))).toBe(true)
    const copy = folders.make()
    cpSync(join(dataDir, 'snapshots'), join(copy, 'snapshots'), { recursive: true })
    await runCommand(copy, 'prune', '--keep-days', '0', '--dry-run')
    expect(readdirSync(copy)).toEqual(['snapshots'])
    expect(await json('prune', '--keep-days', '0')).toEqual({ removed: [FIRST], dry_run: false })
    expect(readdirSync(join(dataDir, 'snapshots')).toSorted()).toEqual([SECOND, 'records'])
  })

  it.each([
    [['--keep-days', '1'], '2026-01-08T23:59:59Z', []],
    [['--keep-days', '1'], '2026-01-09T00:00:00Z', [FIRST]],
    [[], '2026-04-07T23:59:59Z', []],
    [[], '2026-04-08T00:00:00Z', [FIRST]],
  ])(
    '%j keeps a snapshot for this many days after its own (default 90): at %s',
    async (args, now, removed) => {
      const kept = folders.make()
      for (const id of [FIRST, SECOND]) mkdirSync(join(kept, 'snapshots', id), { recursive: true })
      const printed: string[] = []
      await prune.prepare([...args, '--dry-run', '--json'])({
        config: readConfig({ DATA_DIR: kept }),
        progress: SILENT,
        now: () => new Date(now),
        print: (text) => void printed.push(text),
      })
      expect(JSON.parse(printed.join(''))).toEqual({ removed, dry_run: true })
    },
  )

  it('rejects a wrong number of days', async () => {
    const ended = await runCommand(dataDir, 'prune', '--keep-days', '-1')
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('--keep-days')
  })
})

describe('wrong usage', () => {
  it.each([['--json'], ['--with-sample']])(
    'run %s reports a DATA_DIR that cannot be created',
    async (...options) => {
      const file = join(folders.make(), 'file')
      writeFileSync(file, '')
      for (const place of [file, join(file, 'data'), '/proc/data', '/proc/a/b']) {
        const ended = await runCommand(place, 'run', ...options)
        expect(ended).toMatchObject({ code: 2, stdout: '' })
        expect(ended.stderr).toMatch(/^DATA_DIR \S+ cannot be used: [^\n]*\n$/)
      }
    },
  )

  const cases: readonly (readonly [string[], string])[] = [
    [
      ['publish'],
      'Unknown command "publish": expected run, plan, import, status, quarantine, retract, prune, verify, rebuild. See --help',
    ],
    // Every object has a property with this name.
    [['constructor'], 'Unknown command "constructor": expected run'],
    [['status', 'now'], 'status takes no arguments, not "now". See status --help'],
    [['plan', '--all'], "Unknown option '--all'"],
  ]

  it.each(cases)('%j ends with 2 and names the remedy', async (args, message) => {
    const ended = await runCommand(dataDir, ...args)
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain(message)
  })

  it('--help lists every command and setting on stdout', async () => {
    const { code, stdout } = await runCommand(dataDir, '--help')
    expect(code).toBe(0)
    for (const name of ['run', 'plan', 'import', 'status', 'retract', 'prune', 'rebuild'])
      expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'))
    for (const name of Object.keys(pipelineSettings.shape))
      expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'))
    expect(stdout).toMatch(/^  PIPELINE_MEMORY [^:]*; [^:]*Default:\s+2GB\.$/m)
  })
})
