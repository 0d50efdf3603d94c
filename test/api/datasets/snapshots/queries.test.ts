/** CONTRACT 3: a snapshot's queries are limited in number and time, and end with the service. */
import { afterAll, afterEach, expect, it, vi } from 'vitest'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { oneApp, publishSnapshot } from '../../../support/pipeline/snapshot.ts'
import { openSnapshot } from '../../../support/snapshots.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())
afterEach(() => void vi.useRealTimers())

/** Never ends. */
const SLOW = 'SELECT count(*) FROM range(100000000000) AS a (n), range(1000) AS b (m) WHERE n * m % 7 = 8'

it('200 queries may wait, one more is 503, and all end with the service', async () => {
  const snapshot = await openSnapshot(await publishSnapshot(folders.make(), oneApp()))
  const queries = Array.from({ length: 4 + 200 }, () => snapshot.query(SLOW, {}).catch(String))
  await expect(snapshot.query('SELECT 1 AS one', {})).rejects.toMatchObject({ status: 503 })
  await snapshot.close()
  expect(new Set(await Promise.all(queries))).toEqual(new Set(['Error: The service is stopping']))
})

it('a query that takes 20 seconds, its wait included, is 503', async () => {
  // Its interruption is repeated by a timer too.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
  const snapshot = await openSnapshot(await publishSnapshot(folders.make(), oneApp()))
  const query = expect(snapshot.query(SLOW, {})).rejects.toMatchObject({ status: 503 })
  await vi.advanceTimersByTimeAsync(20_000)
  await query
  await snapshot.close()
})
