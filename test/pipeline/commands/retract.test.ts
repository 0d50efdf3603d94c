/** CONTRACT 4.6 and 9: `retract` removes a snapshot, keeps its reason, and never reuses its identifier. */
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import {
  deliver,
  TemporaryFolders,
  currentSnapshot,
  queryCurrent,
  runCommand,
  startCommand,
  writeRaw,
} from '../../support/pipeline/nightly.ts'
import { FIRST, publishTwice, SECOND } from '../../support/pipeline/published-twice.ts'
import { pointAt } from '../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
/** State after two nights. */
const template = folders.make()
let dataDir = ''

beforeAll(() => publishTwice(template))
afterAll(() => folders.removeAll())
beforeEach(() => {
  dataDir = folders.copy(template)
})

function retract(...args: string[]) {
  return runCommand(dataDir, 'retract', ...args)
}

it('retract removes the current snapshot, and the previous one is current again', async () => {
  const ended = await retract(SECOND, '--reason', 'Counted\n twice ', '--json')
  expect(ended.code).toBe(0)
  expect(JSON.parse(ended.stdout)).toMatchObject({ id: SECOND, reason: 'Counted twice', current: FIRST })
  expect(currentSnapshot(dataDir)).toContain(FIRST)
  expect(readdirSync(join(dataDir, 'snapshots')).toSorted()).toEqual([FIRST, 'records'])
  const record = JSON.parse(readFileSync(join(dataDir, 'snapshots/records', `${SECOND}.json`), 'utf8'))
  expect(record).toMatchObject({ id: SECOND, retracted: { reason: 'Counted twice' } })
})

it('a run after a retraction publishes under a later time, compared with the remaining snapshot', async () => {
  await retract(SECOND, '--reason', 'Counted twice')
  const report = await runAt(dataDir, '2026-01-08T02:00:00Z')
  expect(report).toMatchObject({ outcome: 'published', as_of: '2026-01-08T02:00:01Z' })
  expect(await queryCurrent(dataDir, "FROM restatements WHERE cause = 'figures'")).toEqual([])
})

it('retract warns that unchanged input publishes the same figures again, and so does that run', async () => {
  const { stderr } = await retract(SECOND, '--reason', 'Counted twice')
  expect(stderr).toBe('Correct the input before the next run, or it publishes the same figures again\n')
  const again = await runCommand(dataDir, 'run', '--as-of', '2026-01-08T03:00:00Z')
  expect(again.code).toBe(0)
  const notice = `The input is what ${SECOND} was made from, which was retracted (Counted twice): the same figures come again\n`
  expect(again.stderr).toContain(notice)
  await retract('20260108T030000Z', '--reason', 'Still counted twice')
  const third = await runCommand(dataDir, 'run', '--as-of', '2026-01-08T03:30:00Z')
  expect(third.stderr).toContain('20260108T030000Z was made from, which was retracted (Still counted twice)')
  deliver(dataDir, '2026-01-07', ['1,31,0'])
  const corrected = await runCommand(dataDir, 'run', '--as-of', '2026-01-08T04:00:00Z')
  expect(corrected.stderr).not.toContain('which was retracted')
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
  expect((await runCommand(dataDir, 'verify', FIRST)).stderr).toMatch(
    new RegExp(`^Snapshot ${FIRST} was pruned at 20.*Z. The newest are: ${SECOND}\n$`),
  )
  expect(await retract(FIRST, '--reason', 'Wrong names')).toMatchObject({ code: 0, stderr: '' })
  expect(currentSnapshot(dataDir)).toContain(SECOND)
  expect((await runCommand(dataDir, 'verify', FIRST)).stderr).toMatch(
    new RegExp(`^Snapshot ${FIRST} was retracted at 20.*Z: Wrong names. The newest are: ${SECOND}\n$`),
  )
  expect((await retract(FIRST, '--reason', 'x')).stderr).toContain('was retracted already')
})

it('retract --dry-run writes nothing', async () => {
  rmSync(join(dataDir, 'warehouse.duckdb'))
  const before = readdirSync(dataDir, { recursive: true })
  const ended = await retract(SECOND, '--reason', 'Why', '--dry-run')
  expect(readdirSync(dataDir, { recursive: true })).toEqual(before)
  expect(ended.stdout).toBe(`${SECOND} would be retracted: Why\ncurrent snapshot: ${FIRST}\n`)
  expect(ended.stderr).toBe('')
  expect(currentSnapshot(dataDir)).toContain(SECOND)
})

describe('a retraction that was interrupted after writing its record', () => {
  beforeEach(() => recordRetracted(SECOND))

  it.each([
    { before: [], current: FIRST },
    { before: [FIRST], current: 'none' },
  ])(
    'is completed by the next run, before that run can fail: current is $current',
    async ({ before, current }) => {
      for (const id of before) recordRetracted(id)
      writeRaw(dataDir, 'usage/date=2026-01-08/rows.csv', 'nonsense\n1\n')
      await expect(runAt(dataDir, '2026-01-09T02:00:00Z')).rejects.toThrow('rows.csv has no column')
      const status = (await runCommand(dataDir, 'status')).stdout
      expect(status).toMatch(current === 'none' ? /^Nothing is published yet\n/ : `current       ${current}`)
      expect(existsSync(join(dataDir, 'snapshots', SECOND))).toBe(false)
    },
  )

  it('is completed by a second retract, with the first reason', async () => {
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

  it('does not take the place of another retracted snapshot', async () => {
    const only = await retract(FIRST, '--reason', 'x')
    expect(only.stderr).toContain('is the only snapshot: correct the input and run first')
  })
})

/** State of a retraction that was killed just after its first step. */
function recordRetracted(id: string): void {
  const path = join(dataDir, 'snapshots', 'records', `${id}.json`)
  const retracted = { at: '2026-01-08T02:30:00Z', reason: 'Counted twice' }
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), retracted }))
}

it('retract rejects an impossible retraction, and names the remedy', async () => {
  const refusals: (readonly [string[], string | RegExp])[] = [
    [[SECOND], 'retract needs --reason TEXT; the API answers with it\n'],
    [
      ['yesterday', '--reason', 'x'],
      `There is no snapshot "yesterday". The newest are: ${FIRST}, ${SECOND}\n`,
    ],
  ]
  for (const [args, message] of refusals)
    expect(await retract(...args)).toMatchObject({ code: 2, stderr: message })
  await retract(SECOND, '--reason', 'Counted twice')
  expect((await retract(SECOND, '--reason', 'x')).stderr).toMatch(
    new RegExp(`^${SECOND} was retracted already, at .*: Counted twice\n$`),
  )
  const only = {
    code: 2,
    stderr: expect.stringContaining('is the only snapshot: correct the input and run first'),
  }
  expect(await retract(FIRST, '--reason', 'x')).toMatchObject(only)
})

it('retract exits with 75 during a run', async () => {
  const warehouse = await openWarehouse(dataDir, '1GB')
  const ended = await startCommand(dataDir, 'retract', SECOND, '--reason', 'x').ended
  warehouse.close()
  expect(ended.code).toBe(75)
  expect(currentSnapshot(dataDir)).toContain(SECOND)
})

it('status skips an unreadable record and names it, and its identifier is not used again', async () => {
  await retract(SECOND, '--reason', 'Counted twice')
  const path = join('snapshots/records', `${SECOND}.json`)
  writeFileSync(join(dataDir, path), '{"id":"20260108T020000Z"}')
  const status = await runCommand(dataDir, 'status')
  expect(status).toMatchObject({ code: 0, stdout: expect.stringMatching(/^current +20260107T020000Z/) })
  expect(status.stdout).toContain(`unreadable    ${path}`)
  const run = await runCommand(dataDir, 'run', '--as-of', '2026-01-08T02:00:00Z')
  expect(run).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`${path} cannot be read and is left out`),
  })
  expect(currentSnapshot(dataDir)).toContain('20260108T020001Z')
})
