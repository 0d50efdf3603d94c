/** CONTRACT 9: a run that is stopped at any moment, or meets another run, leaves a complete snapshot. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import {
  copyRaw,
  currentSnapshot,
  publish,
  queryCurrent,
  startNightly,
  TemporaryFolders,
  writeRaw,
} from '../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../support/processes.ts'
import type { TextRow } from '../../support/pipeline/nightly.ts'
import { computeDataset } from '../../support/pipeline/oracle-reading.ts'
import { publicDays } from '../../support/pipeline/oracle.ts'
import { randomFrom, seedFrom } from '../../support/random.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const KILLS = 25

const REGISTRY = `app_id,app_name,visibility,subcategories,alias_of,updated_at
1,One,public,cli-agent,,2025-01-01T00:00:00Z
2,Two,public,game,,2025-01-01T00:00:00Z
3,Alias,public,,1,2025-01-01T00:00:00Z
4,Hidden,hidden,,,2025-01-01T00:00:00Z
`

const folders = new TemporaryFolders()

afterAll(() => folders.removeAll())

it(`${KILLS} times killed, the snapshot is whole and the next run publishes`, async () => {
  const random = randomFrom(seedFrom('KILL_SEED'))
  // The moments are spread evenly over a run, and a little beyond its end.
  const moments = Array.from({ length: KILLS }, (_, index) => (1.1 * (index + random())) / KILLS)
  const lanes = [moments.filter((_, index) => index % 2 === 0), moments.filter((_, index) => index % 2 === 1)]
  await Promise.all(lanes.map(killAtMoments))
})

/** Kills one run at each of the moments, which are fractions of a run's duration. */
async function killAtMoments(moments: readonly number[]): Promise<void> {
  const { dataDir, duration } = await measuredFolder()
  for (const [round, moment] of moments.entries()) {
    const before = await publicTables(dataDir)
    deliver(dataDir, round)
    const after = expectedDays(dataDir)
    const { child, ended } = startNightly(dataDir, '--as-of', minute(2 * round))
    await pause(duration * moment)
    child.kill('SIGKILL')
    await ended

    const seen = await publicTables(dataDir)
    expect([days(before), after], `killed after ${moment} of a run`).toContainEqual(days(seen))
    if (JSON.stringify(days(seen)) === JSON.stringify(days(before))) expect(seen).toEqual(before)

    await publish(dataDir, minute(2 * round + 1))
    expect(days(await publicTables(dataDir))).toEqual(after)
  }
  await expectSameAsUndisturbed(dataDir)
  expectOnlyWholeSnapshots(dataDir)
}

/** A folder with a published snapshot, and the milliseconds of a run over new input. */
async function measuredFolder(): Promise<{ dataDir: string; duration: number }> {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  deliver(dataDir, 1000)
  await publish(dataDir, '2026-01-31T02:00:00Z')
  deliver(dataDir, 1001)
  const start = performance.now()
  await startNightly(dataDir, '--as-of', '2026-01-31T03:00:00Z').ended
  return { dataDir, duration: performance.now() - start }
}

/** Adds a file to one of ten days of two months. */
function deliver(dataDir: string, number: number): void {
  const day = addDays('2025-12-24', 4 * (number % 10))
  const rows = [1, 2, 3, 4].map((app) => `${day}T01:00:00Z,${app},${number + app},${app}`)
  writeRaw(
    dataDir,
    `usage/date=${day}/delivery-${number}.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
}

/** Times of runs on one day, in order. */
function minute(number: number): string {
  return new Date(Date.parse('2026-02-01T02:00:00Z') + number * 60_000).toISOString().replace('.000Z', 'Z')
}

type Tables = Readonly<Record<string, TextRow[]>>

async function publicTables(dataDir: string): Promise<Tables> {
  return {
    meta: await queryCurrent(dataDir, 'SELECT * FROM meta'),
    apps: await queryCurrent(dataDir, 'SELECT * FROM apps ORDER BY app_id'),
    app_daily: await queryCurrent(dataDir, 'SELECT * FROM app_daily ORDER BY day, app_id'),
    rankings: await queryCurrent(dataDir, 'SELECT * FROM rankings ORDER BY ALL'),
  }
}

function days(tables: Tables): TextRow[] | undefined {
  return tables['app_daily']
}

function expectedDays(dataDir: string): TextRow[] {
  return publicDays(computeDataset(join(dataDir, 'raw'), '2026-02-01')).map((row) => ({
    day: row.day,
    app_id: String(row.app_id),
    requests: String(row.requests),
    prompt_tokens: String(row.prompt_tokens),
    completion_tokens: String(row.completion_tokens),
  }))
}

async function expectSameAsUndisturbed(dataDir: string): Promise<void> {
  const undisturbed = folders.make()
  copyRaw(undisturbed, join(dataDir, 'raw'))
  await publish(undisturbed, '2026-02-01T12:00:00Z')
  const { meta: _once, ...expected } = await publicTables(undisturbed)
  const { meta: _often, ...tables } = await publicTables(dataDir)
  expect(tables).toEqual(expected)
}

function expectOnlyWholeSnapshots(dataDir: string): void {
  const snapshots = readdirSync(join(dataDir, 'snapshots')).filter((name) => name !== 'records')
  expect(snapshots.filter((name) => !/^\d{8}T\d{6}Z$/.test(name))).toEqual([])
  const complete = readdirSync(currentSnapshot(dataDir)).toSorted()
  for (const name of snapshots) {
    expect(readdirSync(join(dataDir, 'snapshots', name)).toSorted()).toEqual(complete)
  }
}

describe('two runs and repeated runs', () => {
  const dataDir = folders.make()

  beforeAll(async () => {
    writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
    deliver(dataDir, 1)
    await publish(dataDir, minute(0))
  })

  it('unchanged input publishes nothing new, with a message', async () => {
    const before = currentSnapshot(dataDir)
    const run = await publish(dataDir, minute(1))
    expect(run.stderr).toMatch(/unchanged|nothing new/i)
    expect(currentSnapshot(dataDir)).toBe(before)
    expect(readdirSync(join(dataDir, 'snapshots/records'))).toHaveLength(1)
  })

  it('a run during another one exits with 75 and a clear message', async () => {
    const holder = await holdWarehouse(dataDir)
    deliver(dataDir, 2)
    const before = currentSnapshot(dataDir)
    const run = await startNightly(dataDir, '--as-of', minute(2)).ended
    expect(run.stderr).toMatch(/another run/i)
    expect(run.stderr).toContain(String(holder.pid))
    expect(run.stderr).not.toMatch(/^\s+at /m)
    expect(run.code).toBe(75)
    expect(currentSnapshot(dataDir)).toBe(before)
    holder.stdin.end()
    await once(holder, 'close')
    await publish(dataDir, minute(3))
    expect(currentSnapshot(dataDir)).not.toBe(before)
  })

  it('SIGTERM ends a run without harm', async () => {
    deliver(dataDir, 3)
    const before = currentSnapshot(dataDir)
    const { child, ended } = startNightly(dataDir, '--as-of', minute(4))
    await Promise.race([once(child.stderr, 'data'), ended])
    child.kill('SIGTERM')
    const { code, signal } = await ended
    const hasPublished = currentSnapshot(dataDir) !== before
    // The run may have ended before the signal, or met it between publishing and its end.
    if (signal === null) expect({ code, hasPublished }).toEqual({ code: 0, hasPublished: true })
    if (hasPublished) expect(days(await publicTables(dataDir))).toEqual(expectedDays(dataDir))
    await publish(dataDir, minute(5))
    expect(days(await publicTables(dataDir))).toEqual(expectedDays(dataDir))
    expectOnlyWholeSnapshots(dataDir)
  })
})

/** A process with the warehouse open until its stdin ends. */
async function holdWarehouse(dataDir: string) {
  const warehouse = join(dataDir, 'warehouse.duckdb')
  expect(existsSync(warehouse)).toBe(true)
  const script = `
    import { DuckDBInstance } from '@duckdb/node-api'
    const instance = await DuckDBInstance.create(process.argv[1])
    process.stdout.write('open')
    for await (const _ of process.stdin);
    instance.closeSync()`
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', script, warehouse], {
    cwd: REPOSITORY,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  return holder
}
