/**
 * CONTRACT 9: nights with faults. Each fault happens between two good nights: the run reports the fault and the remedy, the
 * previous snapshot stays unchanged to the last byte, and after the remedy the next run is correct.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  globSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../../support/api.ts'
import { copyFolder, makeFolder } from '../../support/folders.ts'
import { LONG } from '../../support/long.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import {
  currentSnapshot,
  deliver,
  queryCurrent,
  register,
  runCommand,
  startNightly,
} from '../../support/pipeline/nightly.ts'
import { startProgram, UNPRIVILEGED, type Ended } from '../../support/processes.ts'

const DAY = '2026-01-06'
const FOLDER = `usage/date=${DAY}`
const FIRST = '20260106T020000Z'
const APPS = ['1,One,public,,,2025-01-01']
const ROWS = ['1,50,0', '1,50,0']
const NIGHT = ['run', '--as-of', '2026-01-07T02:00:00Z'] as const

/** State after the first night. */
const template = makeFolder()
let dataDir = ''

beforeAll(async () => {
  register(template, APPS)
  deliver(template, '2026-01-05', ROWS)
  await runAt(template, '2026-01-06T02:00:00Z')
})

beforeEach(() => {
  dataDir = copyFolder(template)
  deliver(dataDir, DAY, ROWS)
})

const inData = (...names: readonly string[]) => join(dataDir, ...names)
const published = () => join(currentSnapshot(dataDir), 'app-rankings.duckdb')
const warehouse = () => inData('warehouse.duckdb')

const night = () => runCommand(dataDir, ...NIGHT)

function asAnyUser(...args: readonly string[]): Promise<Ended> {
  return startProgram('pipeline/nightly.ts', args, { DATA_DIR: dataDir }, UNPRIVILEGED).ended
}

function digest(): string {
  if (!existsSync(published())) return 'missing'
  return `${published()} ${createHash('sha256').update(readFileSync(published())).digest('hex')}`
}

async function expectBothDays(): Promise<void> {
  expect(await queryCurrent(dataDir, 'SELECT day, prompt_tokens FROM app_daily ORDER BY day')).toEqual([
    { day: '2026-01-05', prompt_tokens: '100' },
    { day: DAY, prompt_tokens: '100' },
  ])
}

async function succeed(...command: readonly string[]): Promise<void> {
  const { code, stderr } = await runCommand(dataDir, ...command)
  expect(code, stderr).toBe(0)
}

/** Damages each block after the headers of a DuckDB file. */
function flipBytes(path: string): void {
  const { size } = statSync(path)
  const descriptor = openSync(path, 'r+')
  for (let at = 12_288; at + 64 < size; at += 4096) writeSync(descriptor, Buffer.alloc(64, 0xa5), 0, 64, at)
  closeSync(descriptor)
}

const DAMAGES: Readonly<Record<string, (path: string) => void>> = {
  'with other bytes in it': (path) => writeFileSync(path, 'no database at all '.repeat(1000)),
  'cut short': (path) => truncateSync(path, 20_000),
  'with flipped bytes inside': flipBytes,
}

type Fault = {
  readonly name: string
  readonly plant: () => unknown
  /** The run into the fault; by default in this process. */
  readonly run?: () => Promise<Ended>
  readonly says: () => string | RegExp
  readonly remedy: () => unknown
}

const FAULTS: readonly Fault[] = [
  {
    name: 'no right to the folder of a day',
    plant: () => chmodSync(inData('raw', FOLDER), 0o000),
    run: () => asAnyUser(...NIGHT),
    says: () => `Cannot read the folder ${inData('raw', FOLDER)}: EACCES`,
    remedy: () => chmodSync(inData('raw', FOLDER), 0o755),
  },
  ...Object.entries({ ...DAMAGES, 'without its file': (path: string) => rmSync(path) }).map(
    ([how, damage]): Fault => ({
      name: `a snapshot ${how}, the only one`,
      plant: () => damage(published()),
      says: () => `${FIRST} is damaged: npm run nightly -- retract ${FIRST} --reason TEXT withdraws it`,
      remedy: () => succeed('retract', FIRST, '--reason', 'Damaged'),
    }),
  ),
  {
    name: 'a published file that was opened for writing, with a WAL beside it',
    plant: () => writeFileSync(`${published()}.wal`, ''),
    says: () => `Remove ${published()}.wal, which holds the changes`,
    remedy: () => rmSync(`${published()}.wal`),
  },
  ...Object.entries(DAMAGES).map(([how, damage]): Fault => ({
    name: `a warehouse ${how}`,
    plant: () => damage(warehouse()),
    says: () => 'npm run nightly -- rebuild',
    remedy: async () => {
      const { code, stderr } = await runCommand(dataDir, 'rebuild', '--as-of', '2026-01-07T02:00:00Z')
      expect([code, stderr]).toEqual([0, expect.stringContaining('The warehouse is set aside as')])
      expect(asides()).toEqual([expect.stringMatching(/^warehouse-\d{8}T\d{9}Z\.duckdb$/)])
    },
  })),
]

/** The warehouses that were set aside. */
const asides = () => readdirSync(dataDir).filter((name) => name.startsWith('warehouse-'))

it.each(FAULTS)('$name: is named, and the next run after the remedy is correct', async (fault) => {
  await fault.plant()
  const before = digest()
  const { code, stderr } = await (fault.run ?? night)()
  expect(stderr).toMatch(fault.says())
  expect(stderr).not.toMatch(/^\s+at /m)
  expect(code).toBe(1)
  expect(digest()).toBe(before)
  expect(readdirSync(inData('snapshots')).filter((name) => name.startsWith('.'))).toEqual([])
  await fault.remedy()
  await succeed(...NIGHT)
  await expectBothDays()
})

it('files without a right are reported for each day, and for the registry once usage can be read', async () => {
  const files = [`${FOLDER}/rows.csv`, 'usage/date=2026-01-05/rows.csv', 'apps/more.csv'] as const
  register(dataDir, APPS, 'more.csv')
  for (const name of files) chmodSync(inData('raw', name), 0o000)
  const { code, stderr } = await asAnyUser(...NIGHT)
  expect(code).toBe(1)
  for (const name of files.slice(0, 2)) expect(stderr).toContain(`${name} cannot be read: EACCES`)
  for (const name of files.slice(0, 2)) chmodSync(inData('raw', name), 0o600)
  expect((await asAnyUser(...NIGHT)).stderr).toContain(`${files[2]} cannot be read: EACCES`)
})

it('a run far behind the newest snapshot names it; retracted, what the clock ahead counted is published once it is over', async () => {
  deliver(dataDir, '2026-01-07', ROWS)
  await runAt(dataDir, '2926-01-07T02:00:00Z')
  const { stderr } = await night()
  expect(stderr).toContain('or, if it is, retract 29260107T020000Z')
  await succeed('retract', '29260107T020000Z', '--reason', 'Wrong clock')
  await succeed(...NIGHT)
  const report = readFileSync(join(currentSnapshot(dataDir), 'report.json'), 'utf8')
  expect(JSON.parse(report).stages[0]).toMatchObject({ stage: 'load', days: 2, days_not_completed: 1 })
  expect((await runAt(dataDir, '2026-01-08T02:00:00Z')).outcome).toBe('published')
  expect(await queryCurrent(dataDir, 'SELECT data_through FROM meta')).toEqual([
    { data_through: '2026-01-07' },
  ])
})

it('status names a damaged snapshot', async () => {
  truncateSync(published(), 20_000)
  const { code, stderr } = await runCommand(dataDir, 'status')
  expect([code, stderr]).toEqual([1, expect.stringContaining(`The snapshot ${FIRST} is damaged`)])
})

it('a DATA_DIR that was copied with its links followed is rejected before any work, with the remedy', async () => {
  const original = dataDir
  dataDir = makeFolder()
  cpSync(original, dataDir, { recursive: true, dereference: true })
  const everything = () => new Set(readdirSync(dataDir, { recursive: true, encoding: 'utf8' }))
  const before = everything()
  const remedy = 'Remove it (its files lie in snapshots/ too) and run again; cp -a and rsync -a keep links\n'
  for (const command of ['run', 'plan', 'status', 'prune', 'rebuild']) {
    const { code, stderr } = await runCommand(dataDir, command)
    expect([command, code]).toEqual([command, 2])
    expect(stderr).toMatch(`${inData('current')} is not a link to the newest snapshot`)
    expect(stderr.endsWith(remedy)).toBe(true)
    expect(everything()).toEqual(before)
  }
  rmSync(inData('current'), { recursive: true })
  await succeed(...NIGHT)
  await expectBothDays()
})

describe('a warehouse', () => {
  it('with an invalid WAL, which holds no acknowledged change, is not damaged', async () => {
    writeFileSync(`${warehouse()}.wal`, 'x'.repeat(5000))
    await succeed(...NIGHT)
    await expectBothDays()
  })

  it('that is rebuilt over the same input publishes nothing new, and keeps each former one', async () => {
    rmSync(inData('raw', FOLDER), { recursive: true })
    const before = digest()
    for (const count of [1, 2]) {
      const { code, stderr } = await runCommand(dataDir, 'rebuild', '--as-of', '2026-01-06T03:00:00Z')
      expect([code, stderr]).toEqual([0, expect.stringContaining('nothing new is published')])
      expect(asides()).toHaveLength(count)
    }
    expect(digest()).toBe(before)
  })

  it('that the user may not open, or that another run holds, is not set aside by a rebuild', async () => {
    chmodSync(warehouse(), 0o000)
    const refused = await asAnyUser('rebuild')
    // One line, which advises no rebuild.
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/^IO.*Permission denied\n$/)])
    chmodSync(warehouse(), 0o600)
    const other = await DuckDBInstance.create(warehouse())
    const locked = await startNightly(dataDir, 'rebuild').ended
    other.closeSync()
    expect([locked.code, locked.stderr]).toEqual([75, expect.stringContaining('another run is under way')])
    expect(asides()).toEqual([])
  })
})

describe('a query of npm run sql that takes more than PIPELINE_MEMORY', () => {
  const sort =
    'SELECT max(text) FROM (SELECT concat(hash(i), hash(i + 1)) AS text FROM range(5000000) AS t (i) ORDER BY 1)'
  const spilled = () => globSync('.spilled-*', { cwd: dataDir })
  const start = (environment: Readonly<Record<string, string>>) =>
    startProgram('pipeline/query.ts', [sort], { DATA_DIR: dataDir, PIPELINE_MEMORY: '100MB', ...environment })
      .ended

  it('spills into DATA_DIR, and what it spilled disappears with it', LONG, async () => {
    const sorted = start({})
    await until(() => spilled().length > 0)
    expect(await sorted).toMatchObject({ code: 0, stdout: expect.stringMatching(/\n *\d+\n$/) })
    expect(spilled()).toEqual([])
  })

  it('spills no more than PIPELINE_SPILL allows, and names the settings', async () => {
    const { code, stderr } = await start({ PIPELINE_SPILL: '1MB' })
    const remedy =
      /^Out of Memory Error: failed to offload data.*\. Raise PIPELINE_MEMORY or PIPELINE_SPILL\n$/
    expect([code, stderr]).toEqual([2, expect.stringMatching(remedy)])
    expect(spilled()).toEqual([])
  })
})
