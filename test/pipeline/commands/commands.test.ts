/** CONTRACT 8 and 9: the commands of `npm run nightly` beside the run itself, and `npm run sql`. */
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { PIPELINE_SETTINGS } from '../../../pipeline/config.ts'
import { utcDay } from '../../../pipeline/contract/calendar.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { NONE_CURRENT } from '../../../pipeline/snapshot/list.ts'
import { copyFolder, makeFolder } from '../../support/folders.ts'
import {
  copyRaw,
  deliver,
  publish,
  runCommand,
  startNightly,
  withApps,
  withDatabase,
  writeRaw,
} from '../../support/pipeline/nightly.ts'
import { pointAt, publishSnapshot } from '../../support/pipeline/snapshot.ts'
import { FIRST, SECOND, publishTwice } from '../../support/pipeline/published-twice.ts'
import { startProgram } from '../../support/processes.ts'

const dataDir = makeFolder()

beforeAll(() => publishTwice(dataDir))
afterEach(() => {
  vi.unstubAllEnvs()
  vi.useRealTimers()
})

/** The --json result of a successful command. */
async function jsonOf(folder: string, ...args: readonly string[]): Promise<unknown> {
  const ended = await runCommand(folder, ...args, '--json')
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  return JSON.parse(ended.stdout)
}

describe('status', () => {
  it('shows what is published and which days are missing', async () => {
    expect(await jsonOf(dataDir, 'status')).toMatchObject({
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

  it('shows how old the data is', async () => {
    const old = makeFolder()
    await publishSnapshot(old, {
      asOf: new Date('2026-01-20T02:00:00Z'),
      firstDay: '2026-01-01',
      dataThrough: '2026-01-10',
      apps: [],
      daily: [],
      missing: ['2026-01-03', '2026-01-04', '2026-01-05', '2026-01-08'],
    })
    vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-01-20T12:00:00Z') })
    const { stdout } = await runCommand(old, 'status')
    expect(stdout).toMatch(/^age {11}9 completed days not in the data: deliver their usage/m)
    expect(stdout).toContain('missing       4 days: 2026-01-03, 2026-01-04, 2026-01-05, 2026-01-08\n')
    expect(await jsonOf(old, 'status')).toMatchObject({ days_behind: 9 })
  })

  it('shows how the last run ended: the reason of a block, later the published snapshot', async () => {
    const copy = makeFolder()
    copyRaw(copy, join(dataDir, 'raw'))
    writeRaw(copy, 'usage/date=2026-01-05/rows.csv', 'ts,app_id\n')
    expect((await runCommand(copy, 'run', '--as-of', '2026-01-08T02:00:00Z')).code).toBe(1)
    expect((await runCommand(copy, 'status')).stdout).toMatch(
      /^No snapshot is current.*\nlast run      \S+Z failed: usage\/date=2026-01-05\/rows.csv has no column/,
    )
    deliver(copy, '2026-01-05', [])
    expect((await runCommand(copy, 'run', '--as-of', '2026-01-08T02:00:00Z')).code).toBe(0)
    const last_run = { outcome: 'published', snapshot: SECOND, message: null }
    expect(await jsonOf(copy, 'status')).toMatchObject({ current: SECOND, last_run })
  })

  it('indents the further lines of its message, and leaves out an unreadable one, which a locked-out run keeps', async () => {
    const copy = makeFolder()
    const file = join(copy, 'last-run.json')
    const lastRun = { finished_at: '2026-01-08T02:00:09Z', outcome: 'blocked', snapshot: null }
    writeFileSync(file, JSON.stringify({ ...lastRun, message: 'A:\n  b\n  c' }))
    const under = ' '.repeat('last run      '.length)
    expect((await runCommand(copy, 'status')).stdout).toBe(
      `${NONE_CURRENT}\nlast run      2026-01-08T02:00:09Z blocked: A:\n${under}  b\n${under}  c\n`,
    )
    writeFileSync(file, '{"half')
    expect(await runCommand(copy, 'status')).toMatchObject({ code: 0, stdout: `${NONE_CURRENT}\n` })
    const held = await openWarehouse({ dataDir: copy, memory: '1GB' })
    expect((await startNightly(copy, 'run').ended).code).toBe(75)
    held.close()
    expect(readFileSync(file, 'utf8')).toBe('{"half')
  })
})

describe('quarantine', () => {
  it('lists rejected rows with file, row, reason and content, of one day or all days', async () => {
    const copy = withApps('One')
    const bad = (count: number) => Array<string>(count).fill('1,-5,0')
    deliver(copy, '2026-01-04', bad(1))
    expect((await runCommand(copy, 'run', '--as-of', '2026-01-05T02:00:00Z')).stderr).toContain(
      'npm run nightly -- quarantine 2026-01-04 lists the rejected rows',
    )
    const { code, stdout } = await runCommand(copy, 'quarantine', '2026-01-04')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^2026-01-04  usage\/date=2026-01-04\/rows.csv +2 +1  prompt_tokens is not an integer, 0 or more +\{"ts":"2026-01-04","app_id":"1","prompt_tokens":"-5"/m,
    )
    expect(await jsonOf(copy, 'quarantine')).toMatchObject({
      rejected: [{ day: '2026-01-04', file: 'usage/date=2026-01-04/rows.csv', row: '2', rows: 1 }],
    })
    expect((await runCommand(copy, 'quarantine', '2026-01-03')).stdout).toBe('No row is rejected\n')

    deliver(copy, '2026-01-04', [`1,-${'5'.repeat(200)},0`, ...bad(59)])
    await runCommand(copy, 'run', '--as-of', '2026-01-05T02:00:00Z')
    const { stdout: many } = await runCommand(copy, 'quarantine')
    expect(many).toMatch(/ 2 +1  prompt_tokens .* \{"ts":.{114}… *\n2026-01-04 .* 3 +1  prompt_tokens /)
    expect(many).toMatch(/\nand 10 more rows; --json lists them all\n$/)
  })

  it.each([
    ['quarantine', 'No row is rejected\n'],
    ['plan', expect.stringMatching(/^current snapshot: none\n0 days to read/)],
    ['status', `${NONE_CURRENT}\n`],
  ])(
    '%s works before the first run, and with the empty warehouse of a killed one',
    async (command, stdout) => {
      const copy = makeFolder()
      expect(await runCommand(copy, command)).toMatchObject({ code: 0, stdout })
      await withDatabase(async () => undefined, join(copy, 'warehouse.duckdb'))
      expect(await runCommand(copy, command)).toMatchObject({ code: 0, stdout })
    },
  )
})

it('a service on another port publishes nothing new, which a run in brief says in one line', async () => {
  vi.stubEnv('PORT', '4711')
  const ended = await runCommand(copyFolder(dataDir), 'run', '--brief', '--as-of', '2026-01-09T02:00:00Z')
  const line = new RegExp(
    `^run      the input has not changed since ${SECOND}; nothing new is published  \\d\\.\\d\\d s\n$`,
  )
  expect(ended).toMatchObject({ code: 0, stderr: expect.stringMatching(line) })
})

describe('plan', () => {
  it('lists the days that a run would read or forget, and writes nothing', async () => {
    const planned = makeFolder()
    for (const day of ['2026-01-06', '2024-12-31', '2026-01-09']) deliver(planned, day, [], 'a.csv')
    const args = ['--as-of', '2026-01-09T12:00:00Z']
    const days = await jsonOf(planned, 'plan', ...args)
    expect(await jsonOf(planned, 'run', '--dry-run', ...args)).toEqual(days)
    expect(days).toEqual({
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

  it('prints lines about the days to read and forget', async () => {
    const { stdout } = await runCommand(dataDir, 'plan')
    const unchanged = '0 days to read, 0 to forget, 3 unchanged, .*\n$'
    expect(stdout).toMatch(new RegExp(`^current snapshot: ${SECOND}\n${unchanged}`))
    const copy = copyFolder(dataDir)
    rmSync(join(copy, 'raw/usage/date=2026-01-04'), { recursive: true })
    expect((await runCommand(copy, 'plan', '--from', '2026-01-04', '--to', '2026-01-06')).stdout).toBe(
      `current snapshot: ${SECOND}\n` +
        '1 day to read, 1 to forget, 0 unchanged, 1 left for the next full run, 0 before the floor, 0 not over yet\n' +
        '  read    2026-01-06: 1 file\n' +
        '  forget  2026-01-04: its files are gone\n',
    )
  })
})

describe('prune', () => {
  it.each([
    ['1', [SECOND, 'records']],
    ['99999', [FIRST, SECOND, 'records']],
    ['', [FIRST, SECOND, 'records']],
  ])('with RETENTION_DAYS "%s" a run leaves %j', async (days, left) => {
    vi.stubEnv('RETENTION_DAYS', days)
    const copy = copyFolder(dataDir)
    await publish(copy, '2026-01-09T02:00:00Z')
    expect(readdirSync(join(copy, 'snapshots')).toSorted()).toEqual(left)
  })

  it('with --dry-run lists snapshots, without it removes exactly these', async () => {
    const copy = makeFolder()
    cpSync(join(dataDir, 'snapshots'), join(copy, 'snapshots'), { recursive: true })
    const args = ['prune', '--keep-days', '0'] as const
    expect(await jsonOf(copy, ...args, '--dry-run')).toEqual({ removed: [FIRST], dry_run: true })
    expect(readdirSync(copy)).toEqual(['snapshots'])
    expect(readdirSync(join(copy, 'snapshots'))).toContain(FIRST)
    expect(await jsonOf(copy, ...args)).toEqual({ removed: [FIRST], dry_run: false })
    expect(readdirSync(join(copy, 'snapshots')).toSorted()).toEqual([SECOND, 'records'])
  })

  const ids = ['20260130', '20260131', '20260201', '20260202', '20260203'].map((day) => `${day}T020000Z`)
  it.each([
    ['1', '2026-02-02T23:59:59Z', [0]],
    ['1', '2026-02-03T00:00:00Z', [0, 2]],
    ['1', '2026-02-04T00:00:00Z', [0, 2]],
    ['5', '2026-02-04T23:59:59Z', []],
    [undefined, '2026-04-30T23:59:59Z', []],
    [undefined, '2026-05-01T00:00:00Z', [0]],
    [undefined, '2026-05-04T00:00:00Z', [0, 2]],
  ])(
    '--keep-days %s (default 90) at %s removes old ones, but neither the last of a month nor the current one',
    async (days, now, removed) => {
      const kept = makeFolder()
      for (const id of ids) mkdirSync(join(kept, 'snapshots', id), { recursive: true })
      pointAt(kept, '20260202T020000Z')
      vi.useFakeTimers({ toFake: ['Date'], now: new Date(now) })
      const args = days === undefined ? [] : ['--keep-days', days]
      const would = { removed: removed.map((at) => ids[at]), dry_run: true }
      expect(await jsonOf(kept, 'prune', ...args, '--dry-run')).toEqual(would)
    },
  )
})

describe('wrong usage', () => {
  it.each([['--json'], ['--with-sample']])(
    'run %s reports a DATA_DIR that cannot be created',
    async (option) => {
      const file = join(makeFolder(), 'file')
      writeFileSync(file, '')
      for (const place of [file, join(file, 'data'), '/proc/data', '/proc/a/b']) {
        const ended = await runCommand(place, 'run', option)
        expect(ended).toMatchObject({ code: 2, stdout: '' })
        expect(ended.stderr).toMatch(/^DATA_DIR \S+ cannot be used: [^\n]*\n$|^There is no folder /)
      }
    },
  )

  const commands = 'run, plan, import, status, quarantine, retract, prune, verify, rebuild'
  it.each([
    ['publish', `Unknown command "publish": expected ${commands}. See npm run nightly -- --help`],
    // Every object has a property with this name.
    ['constructor', 'Unknown command "constructor": expected run'],
    ['status now', 'Expected no arguments, not "now": see npm run nightly -- status --help'],
    ['plan --all', "Unknown option '--all'\nSee npm run nightly -- plan --help\n"],
    ['run --from', "Option '--from <value>' argument missing\nSee npm run nightly -- run --help\n"],
    ['prune --keep-days -1', "use '--keep-days=-XYZ'"],
    ['run --from 2999-01-01 --to 2999-01-02', '--from 2999-01-01 is after 20'],
    ['run --accept all', '--accept: Expected volume, rows, apps, conflicts, not "all"\n'],
    ['quarantine today', '"today" is not a day: expected YYYY-MM-DD\n'],
    ['quarantine 2026-01-04 2026-01-05', 'Expected [DAY], not'],
    ['prune --keep-days=-1', '--keep-days: Expected a whole number from 0 to 999999\n'],
    [`retract ${SECOND}`, '--reason: Expected TEXT; the API answers with it\n'],
    [
      'retract yesterday --reason x',
      `There is no snapshot "yesterday", or its files were removed. The newest are: ${FIRST}, ${SECOND}\n`,
    ],
    ['verify 20260101T000000Z', 'There is no snapshot "20260101T000000Z"'],
    [`verify ${FIRST} --all`, 'verify takes one snapshot, or --all'],
  ])('%j ends with 2 and names the remedy', async (line, message) => {
    const ended = await runCommand(dataDir, ...line.split(' '))
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(message) })
  })

  it.each(['plan', 'run', 'run --dry-run', 'rebuild', 'status', 'verify --all', 'quarantine', 'prune'])(
    '%s names a DATA_DIR that does not exist or is a file, with the remedy, and makes none',
    async (name) => {
      const missing = join(makeFolder(), 'missing')
      const file = join(makeFolder(), 'file')
      writeFileSync(file, '')
      for (const place of [missing, file]) {
        const stderr = `There is no folder ${place}: create it, mount its disk, or set DATA_DIR to the folder that holds raw/\n`
        expect(await runCommand(place, ...name.split(' '))).toMatchObject({ code: 2, stderr })
      }
      expect(existsSync(missing)).toBe(false)
    },
  )

  it('a run without usage says where it looked, before it misses a registry', async () => {
    const empty = makeFolder()
    deliver(empty, utcDay(new Date()), ['1,1,0'])
    const stderr = expect.stringContaining(
      `in ${empty}/raw/usage (1 day there: not over yet): put files into the folders date=YYYY-MM-DD there, or set DATA_DIR`,
    )
    expect(await runCommand(empty, 'run')).toMatchObject({ code: 1, stderr })
  })

  it('--help lists every command and setting on stdout', async () => {
    const { code, stdout } = await runCommand(dataDir, '--help')
    expect(code).toBe(0)
    for (const name of [...commands.split(', '), ...Object.keys(PIPELINE_SETTINGS)])
      expect(stdout).toMatch(new RegExp(`^  ${name}( |$)`, 'm'))
    expect(stdout).toMatch(/^  PIPELINE_MEMORY\n[^:]*; [^:]*Default:\s+2GB\.$/m)
  })
})

describe('npm run sql', () => {
  const ask = (folder: string, ...args: readonly string[]) => {
    const environment = { DATA_DIR: folder, TZ: 'Asia/Tokyo' }
    return startProgram('pipeline/query.ts', args, environment).ended
  }

  it('prints the rows of one query as a table, with times in UTC whatever the time zone of the machine', async () => {
    const rows =
      "SELECT rank, app_name, ['a'] AS list, E'a\\nb\\x1B' AS text, as_of FROM latest_popular, meta"
    const stdout = [
      'rank  app_name  list   text  as_of                 ',
      '   1  Nine      ["a"]  a b   2026-01-08 02:00:00+00',
      '   2  One       ["a"]  a b   2026-01-08 02:00:00+00',
    ].map((line) => line.trimEnd())
    const ended = await ask(dataDir, rows)
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout.trimEnd().split('\n')).toEqual(stdout)
  })

  it.each([
    [['FROM nothing'], /^Catalog Error: Table with name nothing does not exist!/],
    [['DROP TABLE apps'], /^Invalid Input Error: .* read-only mode!\n$/],
    [['--from apps'], /^"--from apps" is no query/],
    [[], /^Expected QUERY: see npm run sql -- --help/],
  ])('ends %j with 2, and never changes the snapshot', async (args, message) => {
    const ended = await ask(dataDir, ...args)
    expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
  })

  it('names the remedy if nothing is published yet', async () => {
    const stderr = `${NONE_CURRENT}\n`
    expect(await ask(makeFolder(), 'SELECT 1')).toMatchObject({ code: 2, stderr })
    const missing = join(makeFolder(), 'missing')
    const noFolder = expect.stringContaining(`There is no folder ${missing}: `)
    expect(await ask(missing, 'SELECT 1')).toMatchObject({ code: 2, stderr: noFolder })
  })
})
