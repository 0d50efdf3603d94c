/** The life of a real directory: groups appear, change, vanish in large numbers, and return. */
import { expect } from 'vitest'
import type { StoreSettings } from '../../../api/store/open-store.ts'
import { findConnectionByName } from '../../../api/scim/connections.ts'
import { FAILURES } from '../../../api/scim/failures.ts'
import { startSyncApi, syncByCommand } from './sync.ts'

/** A SCIM server in its administrator's hands. */
export interface LivingDirectory {
  readonly url: string
  readonly token: string
  /** Creates a user; resolves to its id. */
  readonly user: (name: string) => Promise<string>
  /** Creates a group; resolves to its id. */
  readonly add: (name: string, members?: readonly string[], externalId?: string) => Promise<string>
  readonly put: (
    id: string,
    name: string,
    members?: readonly string[],
    externalId?: string,
  ) => Promise<unknown>
  readonly remove: (id: string) => Promise<unknown>
  /** Removes a group from the list while it stays readable by its id, on servers that can. */
  readonly hide?: (id: string) => Promise<unknown>
}

const GROUPS = 30

/** Lives through it; each chapter ends with the state that an administrator sees. */
export async function liveThrough(directory: LivingDirectory, store: StoreSettings): Promise<void> {
  await using service = await startSyncApi(store, { token: directory.token })
  const acme = await service.connect(directory.url)
  const idOf = async (externalId: string | undefined) =>
    (await acme.groups()).data.find(({ external_id }) => external_id === externalId)?.id
  const succeeds = async (synced_groups: number, deleted_groups = 0) =>
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups, deleted_groups })

  // An empty directory, then a first sync.
  await succeeds(0)
  const [ann = '', bob = '', cid = ''] = await Promise.all(['ann', 'bob', 'cid'].map(directory.user))
  const groups: string[] = []
  for (let number = 0; number < GROUPS; number += 1)
    groups.push(await directory.add(`Team ${number}`, [ann, bob].slice(0, number % 3), `external-${number}`))
  await succeeds(GROUPS)
  expect(await acme.all()).toMatchObject({ 'Team 0': [], 'Team 1': [ann], 'Team 2': [ann, bob].toSorted() })

  // A new name, a new member, a new group, and a removed one.
  const [renamed = '', grown = '', gone = ''] = groups
  const before = await idOf(renamed)
  await directory.put(renamed, 'Renamed', [], 'external-0')
  await directory.put(grown, 'Team 1', [ann, cid], 'external-1')
  await directory.remove(gone)
  await directory.add('Added', [bob], 'external-added')
  await succeeds(GROUPS, 1)
  expect(await idOf(renamed)).toBe(before)
  expect(await acme.all()).toMatchObject({ Renamed: [], 'Team 1': [ann, cid].toSorted(), Added: [bob] })
  await directory.put(grown, 'Team 1', [ann], 'external-1')
  await succeeds(GROUPS)
  expect(await acme.all()).toMatchObject({ 'Team 1': [ann] })

  // The last member leaves.
  await directory.put(grown, 'Team 1', [], 'external-1')
  await succeeds(GROUPS)
  expect(await acme.all()).toMatchObject({ 'Team 1': [] })

  // Two thirds vanish at once: the gate keeps them until the operator accepts the removal.
  const known = await idOf(groups[20])
  for (const group of groups.slice(10)) await directory.remove(group)
  expect(await acme.sync()).toMatchObject({
    status: 'failed',
    error_message: FAILURES.deletion_threshold_exceeded,
  })
  expect((await acme.groups()).total_count).toBe(GROUPS)
  const connection = await findConnectionByName(service.store, 'acme')
  const leave = { token: directory.token, allowDeletions: true }
  const job = await syncByCommand(service.store, connection?.account_id ?? '', leave)
  expect(job).toMatchObject({ status: 'succeeded' })
  expect((await acme.groups()).total_count).toBe(10)

  // A group created again under its externalId keeps its identity.
  const back = await directory.add('Team 20 again', [cid], 'external-20')
  await succeeds(11)
  expect(await idOf(back)).toBe(known)

  // A group that is readable but not listed.
  if (directory.hide === undefined) return
  await directory.hide(grown)
  await succeeds(10, 1)
  expect(await idOf(grown)).toBeUndefined()
}
