import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toMemberList } from '../../../../api/scim/groups/members.ts'
import type { RemoteGroup } from '../../../../api/scim/directory/messages.ts'
import { planSync, type LocalGroup, type Plan } from '../../../../api/scim/sync/plan.ts'

const WHOLE = { mayDelete: true, trustEmptiness: false }

function members(...ids: readonly string[]) {
  return toMemberList(ids.map((id) => ({ id, type: 'User', displayName: null, active: null, email: null })))
}

function their(scimId: string, more: Partial<RemoteGroup> = {}): RemoteGroup {
  return { scimId, externalId: null, displayName: `Group ${scimId}`, members: null, ...more }
}

function our(scimId: string, more: Partial<LocalGroup> = {}): LocalGroup {
  return {
    id: `our-${scimId}`,
    scimId,
    externalId: null,
    displayName: `Group ${scimId}`,
    memberDigest: null,
    memberCount: null,
    createdAt: '2026-11-20T00:00:00.000Z',
    deleted: false,
    ...more,
  }
}

function withMembers(list: ReturnType<typeof members>): Partial<LocalGroup> {
  return { memberDigest: list.digest, memberCount: list.count }
}

/** The store after a plan, by the rules of apply.ts. */
function after(local: readonly LocalGroup[], { changes, deletions }: Plan): LocalGroup[] {
  const groups = new Map(local.map((group) => [group.id, group]))
  for (const { local: former, remote, withMembers: written } of changes) {
    const id = former?.id ?? `new-${remote.scimId}`
    const { scimId, externalId, displayName } = remote
    const list =
      written && remote.members !== null
        ? withMembers(remote.members)
        : { memberDigest: former?.memberDigest ?? null, memberCount: former?.memberCount ?? null }
    groups.set(id, our(scimId, { id, externalId, displayName, ...list, deleted: false }))
  }
  for (const group of deletions) groups.set(group.id, { ...group, deleted: true })
  return [...groups.values()]
}

const externalIds = fc.option(fc.constantFrom('x', 'y', 'z'), { nil: null })
const lists = fc.subarray(['ann', 'bob', 'cid']).map((ids) => members(...ids))

const remoteGroups = fc.uniqueArray(
  fc.record({
    scimId: fc.constantFrom('1', '2', '3', '4', '5', '6'),
    externalId: externalIds,
    displayName: fc.constantFrom('Staff', 'Sales'),
    members: fc.option(lists, { nil: null }),
  }),
  { selector: (group) => group.scimId },
)

const localGroups = fc.uniqueArray(
  fc
    .record({
      scimId: fc.constantFrom('1', '2', '3', '4', '5', '6'),
      externalId: externalIds,
      displayName: fc.constantFrom('Staff', 'Sales'),
      list: fc.option(lists, { nil: null }),
      deleted: fc.boolean(),
    })
    .map(({ list, ...group }) =>
      our(group.scimId, { ...group, ...(list === null ? {} : withMembers(list)) }),
    ),
  { selector: (group) => group.scimId },
)

describe('planSync', () => {
  it('turns any local groups into the remote ones', () => {
    fc.assert(
      fc.property(localGroups, remoteGroups, (local, remote) => {
        const plan = planSync(local, remote, { mayDelete: true, trustEmptiness: true })
        const living = after(local, plan).filter((group) => !group.deleted)
        const facts = (group: LocalGroup | RemoteGroup) =>
          `${group.scimId} ${group.externalId} ${group.displayName}`
        expect(living.map(facts).toSorted()).toEqual(remote.map(facts).toSorted())
        expect(plan.present).toBe(remote.length)
        for (const { scimId, members: list } of remote.filter((group) => group.members !== null)) {
          expect(living.find((group) => group.scimId === scimId)?.memberDigest).toBe(list?.digest)
        }
      }),
    )
  })

  it('changes nothing a second time', () => {
    fc.assert(
      fc.property(localGroups, remoteGroups, fc.boolean(), (local, remote, mayDelete) => {
        const options = { mayDelete, trustEmptiness: true }
        const plan = planSync(after(local, planSync(local, remote, options)), remote, options)
        expect([plan.changes, plan.deletions]).toEqual([[], []])
      }),
    )
  })

  it('matches no local group to two remote ones, and no remote id to two local groups', () => {
    fc.assert(
      fc.property(localGroups, remoteGroups, (local, remote) => {
        const result = after(local, planSync(local, remote, WHOLE))
        expect(new Set(result.map((group) => group.scimId)).size).toBe(result.length)
      }),
    )
  })

  it('deletes nothing after a possibly incomplete list', () => {
    const plan = planSync([our('1'), our('2')], [their('1'), their('3')], { ...WHOLE, mayDelete: false })
    expect(plan.deletions).toEqual([])
    expect(plan.present).toBe(3)
  })

  it('counts the previous state without deleted groups', () => {
    const list = withMembers(members('ann', 'bob'))
    const local = [our('1', list), our('2', { ...list, deleted: true })]
    expect(planSync(local, [their('1')], WHOLE).before).toEqual({ groups: 1, members: 2 })
  })

  it('counts no members of removed groups', () => {
    const local = [our('1', withMembers(members('ann', 'bob'))), our('2', withMembers(members('cid')))]
    expect(planSync(local, [their('2')], WHOLE).before).toEqual({ groups: 2, members: 1 })
    const unsure = { ...WHOLE, mayDelete: false }
    expect(planSync(local, [their('2')], unsure).before).toEqual({ groups: 2, members: 3 })
  })

  it('leaves members alone if none were supplied', () => {
    const local = [our('1', withMembers(members('ann')))]
    expect(planSync(local, [their('1')], WHOLE).changes).toEqual([])
    const renamed = planSync(local, [their('1', { displayName: 'New' })], WHOLE)
    expect(renamed.changes.map((change) => change.withMembers)).toEqual([false])
  })

  it('ignores member lists that are empty in every group, unless it trusts them', () => {
    const local = [our('1', withMembers(members('ann'))), our('2', withMembers(members('bob')))]
    const empty = [their('1', { members: members() }), their('2', { members: members() })]
    expect(planSync(local, empty, WHOLE).changes).toEqual([])
    expect(planSync(local, empty, { ...WHOLE, trustEmptiness: true }).changes).toHaveLength(2)
    const oneEmpty = [their('1', { members: members() }), their('2', { members: members('bob') })]
    expect(planSync(local, oneEmpty, WHOLE).changes.map(({ remote }) => remote.scimId)).toEqual(['1'])
  })

  it('gives a group that comes back its former id', () => {
    const [change] = planSync([our('1', { deleted: true })], [their('1')], WHOLE).changes
    expect(change?.local?.id).toBe('our-1')
  })

  it('recognises a recreated group by its externalId, if that is unique', () => {
    const matched = (local: LocalGroup[], remote: RemoteGroup[]) =>
      planSync(local, remote, WHOLE).changes.map((change) => change.local?.id)
    const anew = their('9', { externalId: 'x' })
    expect(matched([our('1', { externalId: 'x' })], [anew])).toEqual(['our-1'])
    expect(matched([our('1', { externalId: 'x' }), our('2', { externalId: 'x' })], [anew])).toEqual([
      undefined,
    ])
    expect(
      matched([our('1', { externalId: 'x' }), our('2', { externalId: 'x', deleted: true })], [anew]),
    ).toEqual(['our-1'])
    expect(matched([our('1', { externalId: 'x' })], [anew, their('8', { externalId: 'x' })])).toEqual([
      undefined,
      undefined,
    ])
  })

  it('never recognises a group by its name', () => {
    const plan = planSync([our('1')], [their('9', { displayName: 'Group 1' })], WHOLE)
    expect(plan.changes.map((change) => change.local)).toEqual([null])
    expect(plan.deletions.map((group) => group.id)).toEqual(['our-1'])
  })
})
