/**
 CONTRACT 9: * Nights with faults. Each fault happens between two good nights: the run reports the fault and the remedy, the previous
 * snapshot stays unchanged to the last byte, and after the remedy the next run is correct.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { rebuild } from '../../../pipeline/commands/rebuild.ts'
import { readConfig } from '../../../pipeline/config.ts'
import { SILENT, runAt } from '../../support/pipeline/in-process.ts'
import {
  TemporaryFolders,
  currentSnapshot,
  queryCurrent,
  runCommand,
  startCommand,
  startNightly,
  writeRaw,
} from '../../support/pipeline/nightly.ts'
import { startWithoutPrivilege, type Ended } from '../../support/processes.ts'

const DAY = '2026-01-06'
const FOLDER = `usage/date=${DAY}`
const CSV = `ts,app_id,prompt_tokens,completion_tokens\n${`${DAY}T12:00:00Z,1,50,0\n`.repeat(2)}`
const NDJSON = `{"ts":"${DAY}T12:00:00Z","app_id":1,"prompt_tokens":50,"completion_tokens":0}\n`

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let dataDir = ''
/** State after the first night. */
const template = folders.make()
let parquet: Buffer

beforeAll(async () => {
  const path = join(folders.make(), 'rows.parquet')
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run(`COPY (
    SELECT TIMESTAMP '${DAY} 12:00:00' AS ts, 1 AS app_id, 1 AS prompt_tokens, 0 AS completion_tokens FROM range(100)
  ) TO '${path}' (FORMAT parquet)`)
  connection.closeSync()
  instance.closeSync()
  parquet = readFileSync(path)
})

beforeAll(async () => {
  writeRaw(template, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  writeRaw(template, 'usage/date=2026-01-05/rows.csv', CSV.replaceAll(DAY, '2026-01-05'))
  await runAt(template, '2026-01-06T02:00:00Z')
})

beforeEach(() => {
  dataDir = folders.copy(template)
})

function digest(): string {
  const file = join(currentSnapshot(dataDir), 'app-rankings.duckdb')
  return `${file} ${createHash('sha256').update(readFileSync(file)).digest('hex')}`
}

function night(...options: string[]): Promise<Ended> {
  return runCommand(dataDir, 'run', '--as-of', '2026-01-07T02:00:00Z', ...options)
}

/** Runs into the fault, and expects that nothing else changed. */
async function expectFailure(message: string, ended = night()): Promise<Ended> {
  const before = digest()
  const { code, stderr } = await ended
  expect(stderr).toContain(message)
  expect(stderr).not.toMatch(/^\s+at /m)
  expect(code).toBe(1)
  expect(digest()).toBe(before)
  expect(readdirSync(join(dataDir, 'snapshots')).filter((name) => name.startsWith('.'))).toEqual([])
  return await ended
}

/** The next run, after the remedy: both days, with all of their tokens. */
async function expectRight(): Promise<void> {
  const { code, stderr } = await night()
  expect(stderr).toContain('is current')
  expect(code).toBe(0)
  await expectBothDays()
}

async function expectBothDays(): Promise<void> {
  expect(await queryCurrent(dataDir, 'SELECT day, prompt_tokens FROM app_daily ORDER BY day')).toEqual([
    { day: '2026-01-05', prompt_tokens: '100' },
    { day: DAY, prompt_tokens: '100' },
  ])
}

describe('a file', () => {
  it('that was truncated is counted once it is complete', async () => {
    writeRaw(dataDir, `${FOLDER}/rows.csv.gz`, gzipSync(CSV).subarray(0, 30))
    await expectFailure('rows.csv.gz cannot be read')
    writeRaw(dataDir, `${FOLDER}/rows.csv.gz`, gzipSync(CSV))
    await expectRight()
  })

  it('may differ in its schema from others of the day', async () => {
    writeRaw(dataDir, `${FOLDER}/a.csv`, CSV.split('\n').slice(0, 2).join('\n'))
    writeRaw(
      dataDir,
      `${FOLDER}/b.csv`,
      `MODEL,Completion_Tokens,PROMPT_TOKENS,requests,App_Id,TS\nm,0,25,1,1,${DAY}\n`,
    )
    writeRaw(dataDir, `${FOLDER}/c.ndjson`, NDJSON.replace('50', '25'))
    await expectRight()
  })

  it('that disappears between listing and reading is named', async () => {
    mkdirSync(join(dataDir, 'raw', FOLDER), { recursive: true })
    symlinkSync('/nowhere/rows.csv', join(dataDir, 'raw', FOLDER, 'rows.csv'))
    await expectFailure(`${FOLDER}/rows.csv does not exist`)
    rmSync(join(dataDir, 'raw', FOLDER, 'rows.csv'))
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    await expectRight()
  })

  it('that disappears while it is read fails the run with a sentence, or has no effect', async () => {
    for (let number = 0; number < 200; number += 1) writeRaw(dataDir, `${FOLDER}/${number}.csv`, CSV)
    const ended = night()
    for (let number = 199; number > 0; number -= 1) {
      rmSync(join(dataDir, 'raw', FOLDER, `${number}.csv`))
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const { code, stderr } = await ended
    expect(code, stderr).toBeLessThan(2)
    expect(stderr).not.toMatch(/^\s+at /m)
    // If the run listed the folder after the files were gone, it has nothing to publish.
    expect((await night()).code).toBe(0)
    await expectBothDays()
  })
})

describe('a missing right', () => {
  it('to the folder of a day fails the run, which names it', async () => {
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    const folder = join(dataDir, 'raw', FOLDER)
    chmodSync(folder, 0o000)
    await expectFailure(`Cannot read the folder ${folder}: EACCES`, nightOfAnyUser())
    chmodSync(folder, 0o755)
    await expectRight()
  })

  it('to files is reported for each day, not as damage, and for the registry once usage can be read', async () => {
    const files = [`${FOLDER}/rows.csv`, 'usage/date=2026-01-05/rows.parquet', 'apps/more.csv'] as const
    writeRaw(dataDir, files[0], CSV)
    writeRaw(dataDir, files[1], parquet)
    writeRaw(dataDir, files[2], 'app_id,app_name,visibility,updated_at\n')
    const paths = files.map((name) => join(dataDir, 'raw', name))
    for (const path of paths) chmodSync(path, 0o000)
    const { stderr } = await expectFailure(`${files[0]} cannot be read: EACCES`, nightOfAnyUser())
    expect(stderr).toContain(`${files[1]} cannot be read`)
    expect(stderr.match(/Give the user of the run the right to read it/g)).toHaveLength(2)
    for (const path of paths.slice(0, 2)) rmSync(path)
    await expectFailure(`${files[2]} cannot be read: EACCES`, nightOfAnyUser())
  })

  function nightOfAnyUser(): Promise<Ended> {
    const command = ['pipeline/nightly.ts', 'run', '--as-of', '2026-01-07T02:00:00Z'] as const
    return startWithoutPrivilege(command, { DATA_DIR: dataDir }).ended
  }
})

describe('the registry', () => {
  it('with a cycle of aliases fails the run, which names the ids', async () => {
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    const header = 'app_id,app_name,visibility,alias_of,updated_at\n'
    writeRaw(dataDir, 'apps/cycle.csv', `${header}2,Two,public,3,2025-01-01\n3,Three,public,2,2025-01-01\n`)
    await expectFailure('aliases go round in a circle: 2 -> 3 -> 2')
    writeRaw(dataDir, 'apps/mended.csv', `${header}3,Three,public,1,2025-02-01\n`)
    await expectRight()
  })
})

describe('the clock', () => {
  it('far behind the newest snapshot fails the run', async () => {
    await expectFailure(
      'the newest snapshot was computed at 2026-01-06T02:00:00Z. Set the clock right',
      runCommand(dataDir, 'run', '--as-of', '2026-01-05T02:00:00Z'),
    )
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    await expectRight()
  })

  it('that was far ahead for one run is corrected by retracting its snapshot', async () => {
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    writeRaw(dataDir, 'usage/date=2026-01-07/rows.csv', CSV.replaceAll(DAY, '2026-01-07'))
    await runAt(dataDir, '2926-01-07T02:00:00Z')
    const { code, stderr } = await night()
    expect(stderr).toContain('or, if it is, retract 29260107T020000Z')
    expect(code).toBe(1)
    expect((await runCommand(dataDir, 'retract', '29260107T020000Z', '--reason', 'Wrong clock')).code).toBe(0)
    await expectRight()
    // The unfinished day was counted, but is not published yet.
    const report = readFileSync(join(currentSnapshot(dataDir), 'report.json'), 'utf8')
    expect(JSON.parse(report).stages[0]).toMatchObject({ stage: 'load', days: 2, days_not_completed: 1 })
    // Once it is over it is published, although nothing changed.
    expect((await runAt(dataDir, '2026-01-08T02:00:00Z')).outcome).toBe('published')
    expect(await queryCurrent(dataDir, 'SELECT data_through FROM meta')).toEqual([
      { data_through: '2026-01-07' },
    ])
  })

  it('that was far ahead for the only run is corrected in the same way', async () => {
    dataDir = folders.make()
    writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
    writeRaw(dataDir, 'usage/date=2026-01-05/rows.csv', CSV.replaceAll(DAY, '2026-01-05'))
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    await runAt(dataDir, '2926-01-07T02:00:00Z')
    expect((await runCommand(dataDir, 'retract', '29260107T020000Z', '--reason', 'Wrong clock')).code).toBe(0)
    await expectRight()
  })
})

describe('a DATA_DIR that was copied with its links followed', () => {
  const remedy = () =>
    `${join(dataDir, 'current')} is not a link to the newest snapshot; it becomes a folder where DATA_DIR is copied with its links followed. ` +
    'Remove it (its files lie in snapshots/ too) and run again; cp -a and rsync -a keep links\n'

  beforeEach(() => {
    const original = dataDir
    dataDir = folders.make()
    cpSync(original, dataDir, { recursive: true, dereference: true })
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
  })

  it.each(['run', 'plan', 'status', 'prune', 'rebuild'])(
    'is rejected by %s before any work, with the remedy',
    async (command) => {
      const before = new Set(readdirSync(dataDir, { recursive: true, encoding: 'utf8' }))
      const { code, stderr } = await runCommand(dataDir, command)
      expect({ code, stderr }).toEqual({ code: 2, stderr: remedy() })
      expect(new Set(readdirSync(dataDir, { recursive: true, encoding: 'utf8' }))).toEqual(before)
    },
  )

  it('is correct with the next run once the folder is removed', async () => {
    rmSync(join(dataDir, 'current'), { recursive: true })
    await expectRight()
  })
})

it('links that a killed run left beside the pointer are removed by the next one', async () => {
  symlinkSync('snapshots/20260106T020000Z', join(dataDir, '.current-4711'))
  writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
  await expectRight()
  expect(readdirSync(dataDir).filter((name) => name.startsWith('.'))).toEqual([])
})

describe('a damaged snapshot', () => {
  const file = () => join(currentSnapshot(dataDir), 'app-rankings.duckdb')
  const damages: readonly (readonly [string, () => void])[] = [
    ['with other bytes in it', () => writeFileSync(file(), 'no database at all '.repeat(1000))],
    ['cut short', () => truncateSync(file(), 20_000)],
    ['with flipped bytes inside', () => flipBytes(file())],
    ['without its file', () => rmSync(file())],
  ]

  it.each(damages)('%s is named, and can be retracted, although it is the only one', async (_how, damage) => {
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    damage()
    const { code, stderr } = await night()
    expect(stderr).toContain(
      'The snapshot 20260106T020000Z is damaged: npm run nightly -- retract 20260106T020000Z --reason TEXT withdraws it',
    )
    expect(stderr).not.toMatch(/^\s+at |rebuild/m)
    expect(code).toBe(1)
    const retracted = await runCommand(dataDir, 'retract', '20260106T020000Z', '--reason', 'Damaged')
    expect(retracted.code).toBe(0)
    await expectRight()
  })

  it('status names it too', async () => {
    truncateSync(file(), 20_000)
    const { code, stderr } = await runCommand(dataDir, 'status')
    expect(stderr).toContain('The snapshot 20260106T020000Z is damaged')
    expect(code).toBe(1)
  })
})

describe('a published file that is opened for writing, as DuckDB does by default', () => {
  const path = () => join(currentSnapshot(dataDir), 'app-rankings.duckdb')

  it('fails the run with a retry later, while it is open', async () => {
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    const instance = await DuckDBInstance.create(path())
    const { code, stderr } = await startNightly(dataDir).ended
    expect([code, stderr]).toEqual([
      75,
      expect.stringMatching(/^Process \d+ \(\S+.*\) has .* open for writing/m),
    ])
    expect((await startCommand(dataDir, 'status').ended).code).toBe(75)
    instance.closeSync()
    await expectRight()
  })

  it('is not read together with a WAL beside it', async () => {
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    const log = `${path()}.wal`
    writeFileSync(log, '')
    const { code, stderr } = await night()
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Remove ${log}, which holds the changes`)])
    rmSync(log)
    await expectRight()
  })
})

/** Damages each block after the headers of a DuckDB file. */
function flipBytes(path: string): void {
  const { size } = statSync(path)
  const descriptor = openSync(path, 'r+')
  for (let at = 12_288; at + 64 < size; at += 4096) writeSync(descriptor, Buffer.alloc(64, 0xa5), 0, 64, at)
  closeSync(descriptor)
}

describe('a damaged warehouse', () => {
  const path = () => join(dataDir, 'warehouse.duckdb')
  const damages: readonly (readonly [string, () => void])[] = [
    ['with other bytes in it', () => writeFileSync(path(), 'no database at all '.repeat(1000))],
    ['cut short', () => truncateSync(path(), 20_000)],
    ['with flipped bytes inside', () => flipBytes(path())],
  ]

  it.each(damages)('%s is rebuilt by one command, and published snapshots stay', async (_how, damage) => {
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    damage()
    await expectFailure('npm run nightly -- rebuild')
    const { code, stderr } = await runCommand(dataDir, 'rebuild', '--as-of', '2026-01-07T02:00:00Z')
    expect(stderr).toContain('The warehouse is set aside as')
    expect(code).toBe(0)
    expect(readdirSync(dataDir).filter((name) => /^warehouse-\d{8}T\d{6}Z\.duckdb$/.test(name))).toHaveLength(
      1,
    )
    expect(await queryCurrent(dataDir, 'SELECT count(*) AS days FROM app_daily')).toEqual([{ days: '2' }])
  })

  it('does not include one with an invalid WAL, which holds no acknowledged change', async () => {
    writeFileSync(`${path()}.wal`, 'x'.repeat(5000))
    writeRaw(dataDir, `${FOLDER}/rows.csv`, CSV)
    await expectRight()
  })

  it('after a rebuild over the same input publishes nothing new', async () => {
    const before = digest()
    const { code, stderr } = await runCommand(dataDir, 'rebuild', '--as-of', '2026-01-06T03:00:00Z')
    expect(code).toBe(0)
    expect(stderr).toContain('nothing new is published')
    expect(digest()).toBe(before)
  })

  it('stays set aside if another one follows within the same second', async () => {
    const damaged = 'no database at all '.repeat(1000)
    writeFileSync(path(), damaged)
    const dependencies = {
      config: readConfig({ DATA_DIR: dataDir }),
      progress: SILENT,
      now: () => new Date('2026-01-06T03:00:00.500Z'),
      print: () => undefined,
    }
    const work = rebuild.prepare([])
    await work(dependencies)
    await work(dependencies)
    const aside = readdirSync(dataDir).filter((name) => name.startsWith('warehouse-'))
    expect(aside).toEqual(['warehouse-20260106T030000Z.duckdb', 'warehouse-20260106T030001Z.duckdb'])
    expect(readFileSync(join(dataDir, aside[0] ?? ''), 'utf8')).toBe(damaged)
  })

  it('does not include one that needs more memory to open: it stays in place', async () => {
    const dependencies = {
      config: { ...readConfig({ DATA_DIR: dataDir }), memory: '100KB' },
      progress: SILENT,
      now: () => new Date('2026-01-06T03:00:00Z'),
      print: () => undefined,
    }
    await expect(rebuild.prepare([])(dependencies)).rejects.toThrow('Out of Memory')
    expect(readdirSync(dataDir).filter((name) => name.startsWith('warehouse-'))).toEqual([])
  })

  it('does not include one that the user may not open: it stays in place', async () => {
    chmodSync(path(), 0o000)
    const { code, stderr } = await startWithoutPrivilege(['pipeline/nightly.ts', 'rebuild'], {
      DATA_DIR: dataDir,
    }).ended
    expect(stderr).toContain('Permission denied')
    expect(code).toBe(1)
    expect(readdirSync(dataDir).filter((name) => name.startsWith('warehouse-'))).toEqual([])
  })

  it('that another run holds stays in place', async () => {
    const instance = await DuckDBInstance.create(path())
    const { code, stderr } = await startCommand(dataDir, 'rebuild').ended
    instance.closeSync()
    expect(code).toBe(75)
    expect(stderr).toContain('another run is under way')
    expect(readdirSync(dataDir).filter((name) => name.startsWith('warehouse-'))).toEqual([])
  })
})
