/** CONTRACT 9: a disk that fills up while the API serves: reading and counting go on. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import { startApi } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { mountSmallDisk } from '../../../support/small-disk.ts'
import { oneApp, publishSnapshot } from '../../../support/pipeline/snapshot.ts'

const RANKINGS = '/datasets/app-rankings'
const MINUTES = 15

const folders = new TemporaryFolders()
const dataDir = folders.make()
const disk = mountSmallDisk(dataDir, '48m')

afterAll(() => {
  disk?.unmount()
  folders.removeAll()
})

it.runIf(disk !== undefined)('rankings are served and counted as before', async () => {
  await publishSnapshot(dataDir, oneApp())
  let now = new Date('2026-11-20T03:00:00Z')
  await using api = await startApi(dataDir, { clock: () => now })
  const key = await api.makeKey()
  expect((await api.get(RANKINGS, key)).status).toBe(200)

  disk?.fillUp()
  // A WAL checkpoint waits while another process reads the WAL.
  const reader = new DatabaseSync(join(dataDir, 'service.sqlite'))
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM quotas').get()
  setTimeout(() => reader.close(), 200)
  for (let request = 2; request <= 28; request += 1) {
    expect((await api.get(RANKINGS, key)).headers.get('RateLimit')).toContain(
      `"per-minute";r=${30 - request};`,
    )
  }

  // Lines without space are reported, and block nobody.
  const large = api.store.query('CREATE TABLE large AS SELECT randomblob(40000000) AS bytes')
  await expect(large).rejects.toThrow('full')
  for (let minute = 1; minute <= MINUTES; minute += 1) {
    now = new Date(now.getTime() + 60_000)
    for (let request = 1; request <= 30; request += 1) {
      const reply = await api.get(RANKINGS, key)
      expect(reply.status).toBe(200)
      expect(reply.headers.get('RateLimit')).toContain(`"per-minute";r=${30 - request};`)
    }
    expect((await api.get(RANKINGS, key)).status).toBe(429)
  }
  now = new Date(now.getTime() + 60_000)
  expect((await api.get(RANKINGS, key)).headers.get('RateLimit')).toContain('"per-day";r=21;')
})
