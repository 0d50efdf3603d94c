import { afterAll, expect, it } from 'vitest'
import { snapshotId } from '../../../pipeline/contract/calendar.ts'
import { createKey } from '../../../api/accounts/keys/key-store.ts'
import { warnOfNewStore } from '../../../api/store/new-store.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { memoryLog } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const OLD = '20260107T020000Z'

it('a store without accounts beside older snapshots causes a warning until there is an account', async () => {
  const now = new Date()
  const store = await openStore({ DATA_DIR: folders.make(), DATABASE_URL: undefined }, now)
  const warnings = async (ids: readonly string[]) => {
    const { log, messages } = memoryLog()
    await warnOfNewStore(store, ids, log)
    return messages().map(({ msg }) => msg)
  }
  expect(await warnings([OLD])).toEqual([expect.stringContaining('restore service.sqlite')])
  // The first start on a fresh machine publishes before it opens the store.
  for (const ids of [[], [snapshotId(now)]]) expect(await warnings(ids)).toEqual([])
  await createKey(store, { account: 'a', kind: 'inference', now })
  expect(await warnings([OLD])).toEqual([])
  await store.close()
})
