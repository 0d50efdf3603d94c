/** CONTRACT 5: what a second sync does to directories that changed, mostly in ways that caused damage elsewhere. */
import { describe, expect, it } from 'vitest'
import { FAILURES, type Failure } from '../../../api/scim/failures.ts'
import { useAccounts } from '../../support/scim/directory-case.ts'
import {
  manyGroups,
  startDirectory,
  type DirectoryGroup,
  ofList,
} from '../../support/scim/faulty-directory.ts'

const { connect } = useAccounts()

const ten = manyGroups(10)
const members = (count: number, prefix = 'user') =>
  Array.from({ length: count }, (_, index) => ({ value: `${prefix}-${String(index).padStart(3, '0')}` }))
const team = (id: string, count: number, more: Partial<DirectoryGroup> = {}): DirectoryGroup => ({
  id,
  displayName: `Team ${id}`,
  members: members(count, `user-${id}`),
  ...more,
})
const withExternalIds = (prefix: string) =>
  ten.map((group) => ({ ...group, id: prefix + group.id, externalId: `external-${group.id}` }))

interface Change {
  readonly before: readonly DirectoryGroup[]
  readonly after: readonly DirectoryGroup[]
  /** Groups that the second sync deletes, or the cause of its failure. */
  readonly ends: number | Failure
  /** How many groups keep their id. */
  readonly same: number
  /** How many members the first group has in the end. */
  readonly members?: number | null
}

const CHANGES: Readonly<Record<string, Change>> = {
  'loses all of its groups': { before: ten, after: [], ends: 'directory_empty', same: 10 },
  'loses half of its groups': {
    before: manyGroups(100),
    after: manyGroups(50),
    ends: 'deletion_threshold_exceeded',
    same: 100,
  },
  'renames a group': {
    before: ten,
    after: [{ ...team('1', 1), displayName: 'Renamed' }, ...ten.slice(1)],
    ends: 0,
    same: 10,
  },
  'makes a group anew with its externalId': {
    before: [team('1', 2, { externalId: 'e' }), team('2', 2)],
    after: [team('new', 2, { externalId: 'e', displayName: 'Team 1' }), team('2', 2)],
    ends: 0,
    same: 2,
  },
  'gives the id of a group to another one': {
    before: [team('1', 2, { externalId: 'e1' }), team('2', 2)],
    after: [team('1', 1, { externalId: 'e2', displayName: 'Interns' }), team('2', 2)],
    ends: 0,
    same: 2,
    members: 1,
  },
  'gives one externalId to two groups, and makes both anew': {
    before: [team('1', 2, { externalId: 'e' }), team('2', 2, { externalId: 'e' })],
    after: [team('n1', 2, { externalId: 'e' }), team('n2', 2, { externalId: 'e' })],
    ends: 2,
    same: 0,
  },
  'makes all groups anew': {
    before: ten,
    after: ten.map((group) => ({ ...group, id: `new-${group.id}` })),
    ends: 'deletion_threshold_exceeded',
    same: 10,
  },
  'makes all groups anew with their externalIds': {
    before: withExternalIds(''),
    after: withExternalIds('new-'),
    ends: 0,
    same: 10,
  },
  'gives empty lists of members but for one': {
    before: ten,
    after: [...ten.slice(1).map((group) => ({ ...group, members: [] })), ...ten.slice(0, 1)],
    ends: 0,
    same: 10,
  },
  'cuts its lists of members at 100': {
    before: [team('1', 150), team('2', 2)],
    after: [team('1', 100), team('2', 2)],
    ends: 0,
    same: 2,
    members: 100,
  },
  'changes all members of a group for others': {
    before: [team('1', 60), team('2', 2)],
    after: [team('1', 60, { members: members(60, 'other') }), team('2', 2)],
    ends: 'deletion_threshold_exceeded',
    same: 2,
    members: 60,
  },
  'sorts its members otherwise': {
    before: [team('1', 60)],
    after: [team('1', 60, { members: members(60, 'user-1').toReversed() })],
    ends: 0,
    same: 1,
    members: 60,
  },
}

describe.each(Object.entries(CHANGES))('a directory that %s', (_name, { before, after, ...expected }) => {
  it(`ends its second sync with ${expected.ends}`, async () => {
    const groups = [...before]
    await using directory = await startDirectory(groups)
    const acme = await connect(directory.url)
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: before.length })
    const known = (await acme.groups()).data
    groups.splice(0, groups.length, ...after)
    const { ends } = expected
    const outcome = typeof ends === 'number' ? { deleted_groups: ends } : { error_message: FAILURES[ends] }
    expect(await acme.sync()).toMatchObject(outcome)
    const found = (await acme.groups()).data
    expect(found).toHaveLength(typeof ends === 'number' ? after.length : before.length)
    expect(found.filter(({ id }) => known.some((group) => group.id === id))).toHaveLength(expected.same)
    if (expected.members === undefined) return
    const first = known.find(({ external_id }) => external_id === before[0]?.id)
    expect((await acme.members(first?.id ?? '')).total_count).toBe(expected.members)
  })
})

it('all groups are read from a directory with groups that move meanwhile', async () => {
  const groups = manyGroups(250)
  const moved = [...groups.slice(1), ...manyGroups(251).slice(250)]
  await using directory = await startDirectory(groups, {
    quirk: ofList((asked) => {
      if (asked.before >= 1 && asked.before < 20) groups.splice(0, 250, ...moved)
      return undefined
    }),
  })
  const acme = await connect(directory.url)
  expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 250 })
})
