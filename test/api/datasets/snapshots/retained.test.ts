import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shareSnapshot } from '../../../../api/datasets/snapshots/handle.ts'
import { openSnapshot } from '../../../../api/datasets/snapshots/open-snapshot.ts'
import { retainSnapshots } from '../../../../api/datasets/snapshots/retained.ts'
import { memoryLog, startApi, until } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { publishSnapshot, recordSnapshot } from '../../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()
/** More than stay open, beside the current one. */
const DAYS = ['14', '15', '16', '17', '18', '19', '20', '21'] as const

beforeAll(async () => {
  for (const day of DAYS) {
    await publishSnapshot(dataDir, {
      asOf: new Date(`2026-11-${day}T02:00:00Z`),
      dataThrough: '2026-11-13',
      apps: [{ id: 1, name: 'App' }],
      daily: [{ day: '2026-11-13', app: 1, tokens: Number(day) }],
    })
  }
})
afterAll(() => folders.removeAll())

/** Uncaught rejections while `work` ran: each would end a process. */
async function uncaughtDuring(work: () => Promise<unknown>): Promise<unknown[]> {
  const uncaught: unknown[] = []
  const listener = (reason: unknown) => void uncaught.push(reason)
  process.on('unhandledRejection', listener)
  try {
    await work()
  } finally {
    process.off('unhandledRejection', listener)
  }
  return uncaught
}

describe('retainSnapshots', () => {
  it('opens more snapshots at once than stay open, and passes on the errors of each use', async () => {
    const { log } = memoryLog()
    const retained = retainSnapshots(dataDir, log)
    const ids = retained.ids()
    const uncaught = await uncaughtDuring(async () => {
      for (let round = 0; round < 5; round++) {
        const uses = ids.map((id, index) =>
          retained.use(id, async (snapshot) => {
            if (index % 2 === 1) throw new Error(`refused ${id}`)
            return await snapshot.query('SELECT app_id FROM apps', {})
          }),
        )
        const settled = await Promise.allSettled(uses)
        expect(settled.map(({ status }) => status)).toEqual(
          ids.map((_id, index) => (index % 2 === 1 ? 'rejected' : 'fulfilled')),
        )
      }
    })
    expect(uncaught).toEqual([])
    await retained.close()
  })

  it('keeps the most recently used ones open, and none once it is closed', async () => {
    const { log, messages } = memoryLog()
    const retained = retainSnapshots(dataDir, log)
    const ids = retained.ids()
    const closed = () =>
      messages().flatMap(({ msg, snapshot }) => (msg === 'snapshot closed' ? [snapshot] : []))
    const use = (index: number) => retained.use(ids[index] ?? '', async () => undefined)
    for (const index of [0, 1, 2, 3, 0]) await use(index)
    expect(closed()).toEqual([])
    await use(4)
    await until(() => closed().length > 0)
    expect(closed()).toEqual([ids[1]])
    await retained.close()
    expect(new Set(closed())).toEqual(new Set(ids.slice(0, 5)))
  })

  it('retries to open one that could not be opened', async () => {
    const retained = retainSnapshots(dataDir, memoryLog().log)
    const [id = ''] = retained.ids()
    const [folder, aside] = [retained.folder(id), join(dataDir, 'aside')]
    const use = () => retained.use(id, async (snapshot) => snapshot.id)
    renameSync(folder, aside)
    await expect(use()).rejects.toThrow()
    renameSync(aside, folder)
    expect(await use()).toBe(id)
    await retained.close()
  })

  it('closes even while one fails to open', async () => {
    const retained = retainSnapshots(dataDir, memoryLog().log)
    const refused = expect(retained.use('20260101T020000Z', async () => undefined)).rejects.toThrow()
    await retained.close()
    await refused
  })

  it('looks up retractions only by identifiers, not by other paths', () => {
    const retained = retainSnapshots(dataDir, memoryLog().log)
    writeFileSync(join(dataDir, 'other.json'), '{}')
    expect(retained.retraction('../../other')).toBeUndefined()
  })
})

describe('a shared snapshot', () => {
  it('that ends during a query of a failed use closes the snapshot after the query', async () => {
    const { log, messages } = memoryLog()
    const snapshot = await openSnapshot(join(dataDir, 'snapshots', '20261114T020000Z'))
    const held = shareSnapshot(snapshot, log)
    const heavy = 'SELECT count(*) AS n FROM range(10_000_000_000_000) AS a (i) WHERE hash(i) % 7 = 3'
    let sibling: Promise<unknown> = Promise.resolve()
    const use = held.use(async ({ query }) => {
      sibling = query(heavy, {}).catch((error: unknown) => error)
      await query('SELECT nothing FROM nowhere', {})
    })
    await expect(use).rejects.toThrow('nowhere')
    await held.retire()
    expect(await sibling).toBeInstanceOf(Error)
    expect(messages().map(({ msg }) => msg)).toEqual(['snapshot closed'])
  })
})

describe('as_of', () => {
  it('is 410 for a retracted snapshot, even while the pointer leads to it', async () => {
    const content = { dataThrough: '2026-11-13', apps: [], daily: [] }
    const asOf = '2026-11-14T02:00:00Z'
    const published = folders.make()
    await publishSnapshot(published, { ...content, asOf: new Date(asOf) })
    await using api = await startApi(published)
    recordSnapshot(published, '20261114T020000Z', { retracted: { at: asOf, reason: 'wrong' } })
    const response = await api.get(`/datasets/app-rankings?as_of=${asOf}`, await api.makeKey())
    expect(response.status).toBe(410)
  })

  it('answers many at once, from more snapshots than stay open, and rejects some', async () => {
    await using api = await startApi(dataDir)
    const key = await api.makeKey()
    const uncaught = await uncaughtDuring(async () => {
      const replies = await Promise.all(
        DAYS.flatMap((day) => {
          const asOf = `as_of=2026-11-${day}T02:00:00Z`
          return [
            api.get(`/datasets/app-rankings?${asOf}`, key),
            fetch(`${api.origin}/?${asOf}&start_date=2027-01-01`),
          ]
        }),
      )
      expect(replies.map(({ status }) => status)).toEqual(DAYS.flatMap(() => [200, 400]))
    })
    expect(uncaught).toEqual([])
  })
})
