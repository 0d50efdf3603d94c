import { afterAll, describe, expect, it } from 'vitest'
import { createKey } from '../../../../api/accounts/keys/key-store.ts'
import { applyWork, workOf, type Work } from '../../../../api/scim/sync/apply.ts'
import { listGroups, readMembers, readLocalGroups } from '../../../../api/scim/groups/group-store.ts'
import { toMemberList } from '../../../../api/scim/groups/members.ts'
import type { RemoteGroup } from '../../../../api/scim/directory/messages.ts'
import { planSync } from '../../../../api/scim/sync/plan.ts'
import { stageMembers } from '../../../../api/scim/sync/stage.ts'
import { openStore } from '../../../../api/store/open-store.ts'
import type { Store } from '../../../../api/store/store.ts'
import { TestStores } from '../../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const NOW = new Date('2026-11-20T12:00:00Z')
const PAGE = { limit: 100, offset: 0 }

/** Groups of the directory with this many members each; their ids begin with `kind`. */
function directory(sizes: readonly number[], kind = 'user'): RemoteGroup[] {
  return sizes.map((size, number) => ({
    scimId: `group-${number}`,
    externalId: null,
    displayName: `Group ${number}`,
    members: toMemberList(
      Array.from({ length: size }, (_, index) => ({
        id: `${kind}-${index}`,
        type: 'User',
        displayName: null,
        active: null,
        email: null,
      })),
    ),
  }))
}

async function accountIn(store: Store): Promise<string> {
  await createKey(store, { account: 'acme', kind: 'management', now: NOW })
  const [row] = await store.query('SELECT id FROM accounts')
  return String(row?.['id'])
}

async function planned(store: Store, accountId: string, remote: readonly RemoteGroup[]): Promise<Work> {
  const local = await readLocalGroups(store, accountId)
  return workOf(planSync(local, remote, { mayDelete: true, trustEmptiness: false }))
}

/** The visible content of the store: each group with the ids of its members. */
async function shown(store: Store, accountId: string): Promise<Record<string, readonly string[]>> {
  const { data } = await listGroups(store, accountId, PAGE)
  const groups: Record<string, readonly string[]> = {}
  for (const { id, external_id } of data) {
    groups[external_id] = (await readMembers(store, id)).map((member) => member.id).toSorted()
  }
  return groups
}

function asShown(remote: readonly RemoteGroup[]): Record<string, readonly string[]> {
  return Object.fromEntries(
    remote.map(({ scimId, members }) => [scimId, (members?.read() ?? []).map(({ id }) => id).toSorted()]),
  )
}

describe.each(stores.kinds)('stageMembers on $name', ({ name, fresh }) => {
  async function open() {
    const store = await openStore(await fresh(), NOW)
    const accountId = await accountIn(store)
    let transactions = 0
    const stage = (work: Work, hold: (transaction: number) => Promise<void> = async () => undefined) =>
      stageMembers(store, work.changes, {
        accountId,
        now: NOW,
        hold: async () => await hold((transactions += 1)),
      })
    const apply = (work: Work, staged: ReadonlySet<string>) =>
      store.longTransaction((queries) => applyWork(queries, work, { accountId, now: NOW, staged }))
    return {
      store,
      stage,
      apply,
      plan: (remote: readonly RemoteGroup[]) => planned(store, accountId, remote),
      shown: () => shown(store, accountId),
      transactions: () => transactions,
      [Symbol.asyncDispose]: () => store.close(),
    }
  }

  it('stages nothing if there are few members', async () => {
    await using sync = await open()
    expect((await sync.stage(await sync.plan(directory([10, 20])))).size).toBe(0)
    expect(await sync.store.query('SELECT id FROM scim_groups')).toEqual([])
  })

  it('writes many members in several transactions, and shows them with the last one', async () => {
    await using sync = await open()
    const remote = directory([15_000, 0, 7000, 3])
    const work = await sync.plan(remote)
    const staged = await sync.stage(work)
    expect(staged.size).toBe(4)
    expect(sync.transactions()).toBe(3)
    expect(await sync.shown()).toEqual({})
    await sync.apply(work, staged)
    expect(await sync.shown()).toEqual(asShown(remote))
    expect((await sync.plan(remote)).changes).toEqual([])
  })

  // In PostgreSQL other writers never wait.
  it.runIf(name === 'SQLite')('lets others write between its transactions', async () => {
    await using sync = await open()
    const order: string[] = []
    const work = await sync.plan(directory([30_000]))
    await sync.stage(work, async (transaction) => {
      order.push(`piece ${transaction}`)
      if (transaction === 1) void sync.store.transaction(async () => void order.push('other'))
    })
    expect(order.indexOf('other')).toBeLessThan(order.length - 1)
  })

  it('shows nothing of an interrupted sync, and the next sync completes it', async () => {
    await using sync = await open()
    const interrupted = sync.stage(await sync.plan(directory([25_000, 5])), async (transaction) => {
      if (transaction === 2) throw new Error('stopped')
    })
    await expect(interrupted).rejects.toThrow('stopped')
    expect(await sync.shown()).toEqual({})

    const remote = directory([12_000, 3], 'other')
    const work = await sync.plan(remote)
    await sync.apply(work, await sync.stage(work))
    expect(await sync.shown()).toEqual(asShown(remote))
  })

  it('treats the members of a deleted group as unknown once others were staged', async () => {
    await using sync = await open()
    const former = directory([4])
    await sync.apply(await sync.plan(former), new Set())
    await sync.apply(await sync.plan([]), new Set())
    const interrupted = sync.stage(await sync.plan(directory([20_000], 'other')), async (transaction) => {
      if (transaction === 2) throw new Error('stopped')
    })
    await expect(interrupted).rejects.toThrow('stopped')
    await sync.apply(await sync.plan(former), new Set())
    expect(await sync.shown()).toEqual(asShown(former))
  })

  it('does not stage visible groups', async () => {
    await using sync = await open()
    await sync.apply(await sync.plan(directory([2, 2])), new Set())
    const work = await sync.plan(directory([11_000, 2]))
    expect((await sync.stage(work)).size).toBe(0)
    await sync.apply(work, new Set())
    expect(await sync.shown()).toEqual(asShown(directory([11_000, 2])))
  })
})
