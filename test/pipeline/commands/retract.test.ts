/** `retract`: a withdrawn snapshot is gone, its reason stays, and its identifier is never given again. */
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { pointAt, recordRetraction } from '../../../pipeline/snapshot/list.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import {
  TemporaryFolders,
  currentSnapshot,
  queryCurrent,
  runCommand,
  startCommand,
  writeRaw,
} from '../../support/pipeline/nightly.ts'

const FIRST = '20260107T020000Z'
const SECOND = '20260108T020000Z'
const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let dataDir = ''
/** What two nights leave behind. */
const template = folders.make()

function deliver(day: string, tokens: number): void {
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${day},1,${tokens},0\n`,
  )
}

beforeAll(async () => {
  dataDir = template
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  deliver('2026-01-06', 10)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  deliver('2026-01-07', 20)
  await runAt(dataDir, '2026-01-08T02:00:00Z')
})

beforeEach(() => {
  dataDir = folders.copy(template)
})

function retract(...args: string[]) {
  return runCommand(dataDir, 'retract', ...args)
}

it('takes the current snapshot away, and the one before is current again', async () => {
  const ended = await retract(SECOND, '--reason', 'Counted twice', '--json')
  expect(ended.code).toBe(0)
  expect(JSON.parse(ended.stdout)).toMatchObject({ id: SECOND, reason: 'Counted twice', current: FIRST })
  expect(currentSnapshot(dataDir)).toContain(FIRST)
  expect(readdirSync(join(dataDir, 'snapshots')).toSorted()).toEqual([FIRST, 'records', 'retracted'])
  const record = JSON.parse(readFileSync(join(dataDir, 'snapshots/retracted', `${SECOND}.json`), 'utf8'))
  expect(record).toMatchObject({ id: SECOND, as_of: '2026-01-08T02:00:00Z', reason: 'Counted twice' })
})

it('publishes anew afterwards under a later time, compared with what is left', async () => {
  await retract(SECOND, '--reason', 'Counted twice')
  const report = await runAt(dataDir, '2026-01-08T02:00:00Z')
  expect(report).toMatchObject({ outcome: 'published', as_of: '2026-01-08T02:00:01Z' })
  expect(await queryCurrent(dataDir, 'FROM restatements')).toEqual([])
})

it('says that unchanged input publishes the same figures again, and so does the run that does it', async () => {
  const { stderr } = await retract(SECOND, '--reason', 'Counted twice')
  expect(stderr).toBe('Correct the input before the next run, or it publishes the same figures again\n')
  const again = await runCommand(dataDir, 'run', '--as-of', '2026-01-08T03:00:00Z')
  expect(again.code).toBe(0)
  const told = `The input is what ${SECOND} was made from, which was retracted (Counted twice): the same figures come again\n`
  expect(again.stderr).toContain(told)
  await retract('20260108T030000Z', '--reason', 'Still counted twice')
  const third = await runCommand(dataDir, 'run', '--as-of', '2026-01-08T03:30:00Z')
  expect(third.stderr).toContain('20260108T030000Z was made from, which was retracted (Still counted twice)')
  deliver('2026-01-07', 10)
  const corrected = await runCommand(dataDir, 'run', '--as-of', '2026-01-08T04:00:00Z')
  expect(corrected.stderr).not.toContain('which was retracted')
})

it('keeps the pointer when another snapshot is taken away', async () => {
  deliver('2026-01-08', 30)
  await runAt(dataDir, '2026-01-09T02:00:00Z')
  // As a run leaves it that is killed just before it switches the pointer.
  pointAt(dataDir, SECOND)
  expect((await retract(FIRST, '--reason', 'Wrong names')).stderr).toBe('')
  expect(currentSnapshot(dataDir)).toContain(SECOND)
  const status = await runCommand(dataDir, 'status')
  expect(status.stdout).toContain(`retracted     ${FIRST}: Wrong names`)
})

it('withdraws a snapshot that was pruned, so that its citations get the reason', async () => {
  await runCommand(dataDir, 'prune', '--keep-days', '0')
  expect((await runCommand(dataDir, 'diff', FIRST, SECOND)).stderr).toMatch(
    new RegExp(`^Snapshot ${FIRST} was pruned at 20.*Z. The newest are: ${SECOND}\n$`),
  )
  expect(await retract(FIRST, '--reason', 'Wrong names')).toMatchObject({ code: 0, stderr: '' })
  expect(currentSnapshot(dataDir)).toContain(SECOND)
  expect((await runCommand(dataDir, 'diff', FIRST, SECOND)).stderr).toMatch(
    new RegExp(`^Snapshot ${FIRST} was retracted at 20.*Z: Wrong names. The newest are: ${SECOND}\n$`),
  )
  expect((await retract(FIRST, '--reason', 'x')).stderr).toContain('was retracted already')
})

it('writes nothing with --dry-run', async () => {
  rmSync(join(dataDir, 'warehouse.duckdb'))
  const before = readdirSync(dataDir, { recursive: true })
  const ended = await retract(SECOND, '--reason', 'Why', '--dry-run')
  expect(readdirSync(dataDir, { recursive: true })).toEqual(before)
  expect(ended.stdout).toBe(`${SECOND} would be retracted: Why\ncurrent snapshot: ${FIRST}\n`)
  expect(ended.stderr).toBe('')
  expect(currentSnapshot(dataDir)).toContain(SECOND)
  expect(existsSync(join(dataDir, 'snapshots/retracted'))).toBe(false)
})

describe('interrupted after its record was written', () => {
  beforeEach(() => recordRetracted(SECOND))

  it('is brought to its end by the next run, before anything of it may fail', async () => {
    writeRaw(dataDir, 'usage/date=2026-01-08/rows.csv', 'nonsense\n1\n')
    await expect(runAt(dataDir, '2026-01-09T02:00:00Z')).rejects.toThrow('rows.csv has no column')
    expect(currentSnapshot(dataDir)).toContain(FIRST)
    expect(existsSync(join(dataDir, 'snapshots', SECOND))).toBe(false)
  })

  it('leaves no pointer where no snapshot is left', async () => {
    recordRetracted(FIRST)
    writeRaw(dataDir, 'usage/date=2026-01-08/rows.csv', 'nonsense\n1\n')
    await expect(runAt(dataDir, '2026-01-09T02:00:00Z')).rejects.toThrow('rows.csv has no column')
    expect(readdirSync(dataDir)).not.toContain('current')
    expect((await runCommand(dataDir, 'status')).stdout).toBe('Nothing is published yet\n')
  })

  it('is finished when it is asked for again, for the reason of the first time', async () => {
    const tried = await retract(SECOND, '--reason', 'x', '--dry-run')
    expect(tried.stdout).toBe(`${SECOND} would be retracted: Counted twice\ncurrent snapshot: ${FIRST}\n`)
    expect(currentSnapshot(dataDir)).toContain(SECOND)
    const again = await retract(SECOND, '--reason', 'x', '--json')
    expect(again.code).toBe(0)
    expect(JSON.parse(again.stdout)).toMatchObject({ reason: 'Counted twice', current: FIRST })
    expect(currentSnapshot(dataDir)).toContain(FIRST)
    expect(existsSync(join(dataDir, 'snapshots', SECOND))).toBe(false)
    expect((await retract(SECOND, '--reason', 'x')).stderr).toContain('was retracted already')
  })

  it('is finished too where its removal had begun', async () => {
    const left = join(dataDir, 'snapshots', `.pruned-${SECOND}`)
    renameSync(join(dataDir, 'snapshots', SECOND), left)
    pointAt(dataDir, FIRST)
    const again = await retract(SECOND, '--reason', 'x', '--json')
    expect(again.code).toBe(0)
    expect(existsSync(left)).toBe(false)
    expect(currentSnapshot(dataDir)).toContain(FIRST)
  })

  it('is no stand-in for another that is taken away', async () => {
    const only = await retract(FIRST, '--reason', 'x')
    expect(only.stderr).toContain('is the only snapshot: correct the input and run first')
  })
})

/** The state in which a retraction is left that was killed just after its first step. */
function recordRetracted(id: string): void {
  recordRetraction(dataDir, {
    id,
    as_of: '2026-01-08T02:00:00Z',
    reason: 'Counted twice',
    retracted_at: '2026-01-08T02:30:00Z',
  })
}

it('refuses what cannot be done, and names the remedy', async () => {
  expect((await retract(SECOND)).stderr).toBe('retract needs --reason TEXT; the API answers with it\n')
  expect((await retract('yesterday', '--reason', 'x')).stderr).toBe(
    `There is no snapshot "yesterday". The newest are: ${FIRST}, ${SECOND}\n`,
  )
  await retract(SECOND, '--reason', 'Counted twice')
  const again = await retract(SECOND, '--reason', 'x')
  expect(again.stderr).toMatch(new RegExp(`^${SECOND} was retracted already, at .*: Counted twice\n$`))
  const only = await retract(FIRST, '--reason', 'x')
  expect(only.code).toBe(2)
  expect(only.stderr).toContain('is the only snapshot: correct the input and run first')
})

it('waits for no run: another one under way is exit 75', async () => {
  const warehouse = await openWarehouse(dataDir, '1GB')
  const ended = await startCommand(dataDir, 'retract', SECOND, '--reason', 'x').ended
  warehouse.close()
  expect(ended.code).toBe(75)
  expect(currentSnapshot(dataDir)).toContain(SECOND)
})

it.each(['', '{"id":"20260108T020000Z"}'])('leaves out and names a record that is none: %j', async (text) => {
  await retract(SECOND, '--reason', 'Counted twice')
  const path = join('snapshots/retracted', `${SECOND}.json`)
  writeFileSync(join(dataDir, path), text)
  const status = await runCommand(dataDir, 'status')
  expect(status).toMatchObject({ code: 0, stdout: expect.stringMatching(/^current +20260107T020000Z/) })
  expect(status.stdout).toContain(`unreadable    ${path}`)
  // It counts as retracted still, and its identifier is not given again.
  const run = await runCommand(dataDir, 'run', '--as-of', '2026-01-08T02:00:00Z')
  expect(run).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`${path} cannot be read and is left out`),
  })
  expect(currentSnapshot(dataDir)).toContain('20260108T020001Z')
})
