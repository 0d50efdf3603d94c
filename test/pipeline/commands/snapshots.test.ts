/**
 * CONTRACT 4.6 and 9: `retract` removes a snapshot, keeps its reason, and never reuses its identifier; `verify` names
 * published files that were damaged on disk.
 */
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { copyFolder, makeFolder } from '../../support/folders.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import {
  deliver,
  currentSnapshot,
  publish,
  queryCurrent,
  runCommand,
  startNightly,
  writeRaw,
} from '../../support/pipeline/nightly.ts'
import { FIRST, publishTwice, SECOND } from '../../support/pipeline/published-twice.ts'
import { pointAt } from '../../support/pipeline/snapshot.ts'

/** State after two nights. */
const template = makeFolder()
let dataDir = ''

beforeAll(() => publishTwice(template))
beforeEach(() => {
  dataDir = copyFolder(template)
})

const pathOf = (...parts: readonly string[]) => join(dataDir, 'snapshots', ...parts)

function retract(...args: string[]) {
  return runCommand(dataDir, 'retract', ...args)
}

it('retract removes the current snapshot, and the previous one is current again', async () => {
  const ended = await retract(SECOND, '--reason', 'Counted\n twice ', '--json')
  expect(ended.code).toBe(0)
  expect(JSON.parse(ended.stdout)).toMatchObject({ id: SECOND, reason: 'Counted twice', current: FIRST })
  expect(currentSnapshot(dataDir)).toContain(FIRST)
  expect(readdirSync(pathOf()).toSorted()).toEqual([FIRST, 'records'])
  const record = JSON.parse(readFileSync(pathOf('records', `${SECOND}.json`), 'utf8'))
  expect(record).toMatchObject({ id: SECOND, retracted: { reason: 'Counted twice' } })
})

it('runs after a retraction take a later time; it says that unchanged input gives the same figures again', async () => {
  const { stderr } = await retract(SECOND, '--reason', 'Counted twice')
  expect(stderr).toBe('Correct the input before the next run, or it publishes the same figures again\n')
  await publish(dataDir, '2026-01-08T02:00:00Z')
  const later = '20260108T020001Z'
  expect(currentSnapshot(dataDir)).toContain(later)
  // The night is compared with the remaining snapshot.
  expect(await queryCurrent(dataDir, "FROM restatements WHERE cause = 'figures'")).toEqual([])
  // The clock was set back a little.
  deliver(dataDir, '2026-01-05', ['1,5,0'])
  await publish(dataDir, '2026-01-08T01:59:30Z')
  expect(currentSnapshot(dataDir)).toContain('20260108T020002Z')
})

it('retract keeps the pointer if another snapshot is retracted', async () => {
  deliver(dataDir, '2026-01-08', ['1,30,0'])
  await runAt(dataDir, '2026-01-09T02:00:00Z')
  // State after a run that was killed just before it switched the pointer.
  pointAt(dataDir, SECOND)
  expect((await retract(FIRST, '--reason', 'Wrong names')).stderr).toBe('')
  expect(currentSnapshot(dataDir)).toContain(SECOND)
  const status = await runCommand(dataDir, 'status')
  expect(status.stdout).toContain(`retracted     ${FIRST}: Wrong names`)
})

it('withdraws a snapshot that was pruned, so that its citations get the reason', async () => {
  await runCommand(dataDir, 'prune', '--keep-days', '0')
  expect((await runCommand(dataDir, 'verify', FIRST)).stderr).toContain(
    `There is no snapshot "${FIRST}", or its files were removed. The newest are: ${SECOND}`,
  )
  expect(await retract(FIRST, '--reason', 'Wrong names.')).toMatchObject({ code: 0, stderr: '' })
  expect(currentSnapshot(dataDir)).toContain(SECOND)
  expect((await retract(FIRST, '--reason', 'x')).stderr).toContain('was retracted already')
})

describe('a retraction that was interrupted after writing its record', () => {
  beforeEach(() => recordRetracted(SECOND))

  it.each([
    [[], `current       ${FIRST}`],
    [[FIRST], 'No snapshot is current'],
  ])('is completed by the next run, before that run can fail; with %j before it', async (before, shown) => {
    for (const id of before) recordRetracted(id)
    writeRaw(dataDir, 'usage/date=2026-01-08/rows.csv', 'nonsense\n1\n')
    await expect(publish(dataDir, '2026-01-09T02:00:00Z')).rejects.toThrow('rows.csv has no column')
    expect((await runCommand(dataDir, 'status')).stdout).toContain(shown)
    expect(readdirSync(pathOf())).not.toContain(SECOND)
  })

  it('is completed by a second retract, with the first reason', async () => {
    const again = await retract(SECOND, '--reason', 'x', '--json')
    expect(again.code).toBe(0)
    expect(JSON.parse(again.stdout)).toMatchObject({ reason: 'Counted twice', current: FIRST })
    expect(currentSnapshot(dataDir)).toContain(FIRST)
    expect(readdirSync(pathOf())).not.toContain(SECOND)
    expect((await retract(SECOND, '--reason', 'x')).stderr).toMatch(
      /was retracted already, at .*: Counted twice\n$/,
    )
  })

  it('does not take the place of another retracted snapshot', async () => {
    const only = await retract(FIRST, '--reason', 'x')
    expect(only.stderr).toContain('is the only snapshot: correct the input and run first')
  })
})

/** State of a retraction that was killed just after its first step. */
function recordRetracted(id: string): void {
  const path = pathOf('records', `${id}.json`)
  const retracted = { at: '2026-01-08T02:30:00Z', reason: 'Counted twice' }
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), retracted }))
}

it('retract exits with 75 during a run', async () => {
  const warehouse = await openWarehouse({ dataDir, memory: '1GB' })
  const ended = await startNightly(dataDir, 'retract', SECOND, '--reason', 'x').ended
  warehouse.close()
  expect(ended.code).toBe(75)
  expect(currentSnapshot(dataDir)).toContain(SECOND)
})

it('a retraction of version 1.0.0 waits until its record can be read, and is named meanwhile', async () => {
  const run = async (hour: number) =>
    (await runCommand(dataDir, 'run', '--as-of', `2026-01-09T0${hour}:00:00Z`)).stderr
  const [former, record] = [pathOf('retracted', `${FIRST}.json`), pathOf('records', `${FIRST}.json`)]
  const [whole, retraction] = [
    readFileSync(record, 'utf8'),
    { reason: 'Wrong', retracted_at: '2026-01-08T02:30:00Z' },
  ]
  mkdirSync(pathOf('retracted'))
  for (const [hour, text] of ['{"half', JSON.stringify(retraction)].entries()) {
    writeFileSync(former, text)
    writeFileSync(record, hour === 0 ? whole : '{')
    rmSync(pathOf(FIRST, 'record.json'), { force: true })
    expect(await run(1 + hour)).toContain(`snapshots/retracted/${FIRST}.json cannot be read and is left out`)
  }
  writeFileSync(record, whole)
  expect(await run(3)).not.toContain('cannot be read')
  expect(JSON.parse(readFileSync(record, 'utf8'))).toMatchObject({ retracted: { reason: 'Wrong' } })
  expect(readdirSync(pathOf())).not.toContain(FIRST)
})

it('status skips an unreadable record, which a run names, and its identifier is not used again', async () => {
  await retract(SECOND, '--reason', 'Counted twice')
  const path = join('snapshots/records', `${SECOND}.json`)
  writeFileSync(join(dataDir, path), '{"id":"20260108T020000Z"}')
  const status = await runCommand(dataDir, 'status')
  expect(status).toMatchObject({ code: 0, stdout: expect.stringMatching(/^current +20260107T020000Z/) })
  const { stderr } = await publish(dataDir, '2026-01-08T02:00:00Z')
  expect(stderr).toContain(`${path} cannot be read and is left out`)
  expect(currentSnapshot(dataDir)).toContain('20260108T020001Z')
})

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

it.each(DAMAGES)('verify names each file that is %s, and exits with 1', async (_how, damage, words) => {
  for (const file of FILES) damage(pathOf(SECOND, file))
  const ended = await runCommand(dataDir, 'verify')
  expect(ended.code).toBe(1)
  for (const file of FILES) {
    expect(ended.stdout).toMatch(new RegExp(`^snapshots/${SECOND}/${file} ${words.source}$`, 'm'))
  }
  expect(ended.stderr).toContain('4 published files broken. Restore them from a backup')
})

it('verify names a DuckDB file that was opened for writing, a record that cannot be read, and no fault without these', async () => {
  const whole = await runCommand(dataDir, 'verify', '--all')
  expect(whole).toMatchObject({ code: 0, stdout: '2 snapshots verified: 0 published files broken\n' })
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
  expect(status.stdout).toContain('No snapshot is current')
  truncateSync(pathOf(SECOND, 'app-rankings.duckdb'), 10)
  const { code, stderr } = await runCommand(dataDir, 'run', '--as-of', '2026-01-09T02:00:00Z')
  expect(code).toBe(1)
  expect(stderr).toContain(`current led to no snapshot; it leads to ${FIRST}, the newest whole one`)
  expect(currentSnapshot(dataDir)).toContain(FIRST)
})
