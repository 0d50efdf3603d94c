/** CONTRACT 10: PostgreSQL that cannot be reached. */
import dns from 'node:dns'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { openStore } from '../../../api/store/open-store.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())
afterEach(() => vi.restoreAllMocks())

describe('openStore on a host of several addresses', () => {
  it('reports why none of them is usable', async () => {
    const addresses = [1, 2].map((last) => ({ address: `127.0.0.${last}`, family: 4 }))
    vi.spyOn(dns, 'lookup').mockImplementation((...args: readonly unknown[]) => {
      const answer = args.at(-1)
      if (typeof answer === 'function') setImmediate(() => answer(null, addresses))
    })
    const settings = { DATA_DIR: folders.make(), DATABASE_URL: 'postgres://u@db.example:1/d' }
    await expect(openStore(settings, new Date())).rejects.toThrow(
      /^DATABASE_URL: database "d" at db\.example:1 cannot be used: connect ECONNREFUSED [\d.:]+, connect /,
    )
  })
})
