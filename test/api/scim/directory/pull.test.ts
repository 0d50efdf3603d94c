import { describe, expect, it } from 'vitest'
import {
  groupsNamed,
  manyGroups,
  startDirectory,
  usualReply,
  type DirectoryGroup,
} from '../../../support/faulty-directory.ts'
import { failureOf, idsOf, listQueries, ofList, pullFrom } from '../../../support/pull.ts'

describe('pull and members', () => {
  it('tells a list that is missing from one that is empty', async () => {
    const groups: DirectoryGroup[] = [
      { id: '1', displayName: 'Without' },
      { id: '2', displayName: 'Empty', members: [] },
      {
        id: '3',
        displayName: 'Full',
        members: [{ value: 'b' }, { value: 'a', type: 'Group', display: 'A' }, { value: 'b' }],
      },
    ]
    await using directory = await startDirectory(groups)
    const pulled = await pullFrom(directory)
    expect(pulled.ids.map((id) => pulled.groups.get(id)?.members?.read())).toEqual([
      undefined,
      [],
      [
        { id: 'a', type: 'Group', displayName: 'A' },
        { id: 'b', type: null, displayName: null },
      ],
    ])
  })

  it('asks for each group where the list has no members', async () => {
    await using directory = await startDirectory(manyGroups(15))
    const { groups } = await pullFrom(directory, { members: 'per_group' })
    expect([...groups.values()].map(({ members }) => members?.read()[0]?.id)).toEqual(
      idsOf(directory.groups).map((id) => `user-of-${id}`),
    )
    expect(listQueries(directory).every((query) => query.get('excludedAttributes') === 'members')).toBe(true)
  })

  it.each([404, 410])(
    'drops a group that is deleted (%i) between the list and its own request',
    async (status) => {
      await using directory = await startDirectory(manyGroups(3), {
        quirk: ({ path }) => {
          if (path !== '/Groups/2') return undefined
          directory.groups.splice(1, 1)
          return { status, body: {} }
        },
      })
      expect((await pullFrom(directory, { members: 'per_group' })).ids).toEqual(['1', '3'])
    },
  )

  it.each([400, 404, 410])(
    'keeps to the list where that has a group that is %i by its id',
    async (status) => {
      await using directory = await startDirectory(groupsNamed('1', 'a/b', '3'), {
        quirk: ({ path }) => (path === '/Groups/a%2Fb' ? { status, body: {} } : undefined),
      })
      expect(await failureOf(directory, { members: 'per_group' })).toBe('directory_invalid_response')
      await expect(pullFrom(directory, { members: 'per_group' })).rejects.toThrow('the group "a/b" is listed')
    },
  )

  it('asks for a group by its id, whatever characters that has', async () => {
    await using directory = await startDirectory(groupsNamed('a/b', 'c?d=e', 'f#g', '100%25', 'ä b'))
    const { groups } = await pullFrom(directory, { members: 'per_group' })
    expect([...groups.values()].map(({ members }) => members?.count)).toEqual([1, 1, 1, 1, 1])
  })

  it('takes no other group for the one it asked for', async () => {
    await using directory = await startDirectory(manyGroups(3), {
      quirk: ({ path }) => (path === '/Groups/2' ? { body: { id: '3', displayName: 'Other' } } : undefined),
    })
    expect(await failureOf(directory, { members: 'per_group' })).toBe('directory_invalid_response')
  })
})

describe('pull of hostile or broken answers', () => {
  it.each([
    ['no list', { hello: 'world' }],
    ['an array', []],
    ['a list of texts', { totalResults: 1, Resources: ['group'] }],
    ['a group without id', { totalResults: 1, Resources: [{ displayName: 'Nameless' }] }],
    ['an id that climbs', { totalResults: 1, Resources: [{ id: '..', displayName: 'Up' }] }],
    ['an id with a line break', { totalResults: 1, Resources: [{ id: 'a\nb', displayName: 'Two lines' }] }],
    ['an id without end', { totalResults: 1, Resources: [{ id: 'x'.repeat(2000), displayName: 'Long' }] }],
    [
      'members that are no list',
      { totalResults: 1, Resources: [{ id: '1', displayName: 'A', members: {} }] },
    ],
    ['a cursor that is none', { Resources: [{ id: '1', displayName: 'A' }], nextCursor: { page: 2 } }],
    ['a member without id', { totalResults: 1, Resources: [{ id: '1', displayName: 'A', members: [{}] }] }],
  ])('fails on %s', async (_name, body) => {
    await using directory = await startDirectory([], { quirk: ofList(() => ({ body })) })
    expect(await failureOf(directory)).toBe('directory_invalid_response')
  })

  it('keeps names in a form that every store and terminal can bear', async () => {
    const groups = [
      { id: '1', displayName: `a\u0000\u001b[31m\ud800${'x'.repeat(5000)}` },
      { id: '2', displayName: ' ' },
    ]
    await using directory = await startDirectory(groups)
    const pulled = await pullFrom(directory)
    const [first = '', second] = pulled.ids.map((id) => pulled.groups.get(id)?.displayName)
    expect(first).toMatch(/^a {2}\[31m\ufffdx+$/)
    expect(first).toHaveLength(1024)
    expect(second).toBe('2')
  })

  it('does without an externalId that is none', async () => {
    const group = { id: '1', displayName: 'A' }
    await using directory = await startDirectory([], {
      quirk: ofList(() => ({ body: { totalResults: 1, Resources: [{ ...group, externalId: {} }] } })),
    })
    expect((await pullFrom(directory)).groups.get('1')?.externalId).toBeNull()
  })

  it('takes the id of a member from its address where that is all there is', async () => {
    const members = [{ $ref: 'https://other.example/Users/ann%20b' }]
    await using directory = await startDirectory([], {
      quirk: ofList(() => ({
        body: { totalResults: 1, Resources: [{ id: '1', displayName: 'A', members }] },
      })),
    })
    const { groups } = await pullFrom(directory)
    expect(
      groups
        .get('1')
        ?.members?.read()
        .map(({ id }) => id),
    ).toEqual(['ann b'])
  })

  it.each([
    ['groups', { groups: 20 }],
    ['pages', { pages: 2 }],
    ['members of a group', { membersPerGroup: 0 }],
    ['members in all', { members: 24 }],
  ])('stops at its limit of %s', async (_name, limits) => {
    await using directory = await startDirectory(manyGroups(25))
    expect(await failureOf(directory, { limits })).toBe('directory_too_large')
  })

  it.each([
    ['members of a group', { membersPerGroup: 0 }],
    ['members in all', { members: 24 }],
  ])('stops at its limit of %s where it asks for each group', async (_name, limits) => {
    await using directory = await startDirectory(manyGroups(25))
    expect(await failureOf(directory, { members: 'per_group', limits })).toBe('directory_too_large')
  })

  it.each([
    ['is malformed', [{ value: 'x'.repeat(2000) }]],
    ['has too many members', [{ value: 'ann' }, { value: 'bob' }]],
  ])('names the group that %s', async (_name, members) => {
    const groups = [...groupsNamed('1'), { id: '2', displayName: 'Faulty', members }]
    await using directory = await startDirectory(groups)
    for (const mode of ['inline', 'per_group'] as const) {
      const pulling = pullFrom(directory, { members: mode, limits: { membersPerGroup: 1 } })
      await expect(pulling).rejects.toThrow('the group "2"')
    }
  })

  it('stops when the token is refused in the middle', async () => {
    await using directory = await startDirectory(manyGroups(25), {
      quirk: ofList(({ before }) => (before === 1 ? { status: 401, body: {} } : undefined)),
    })
    expect(await failureOf(directory)).toBe('directory_unauthorized')
  })

  it('needs no ServiceProviderConfig', async () => {
    for (const status of [401, 403, 404, 500]) {
      await using directory = await startDirectory(manyGroups(3), {
        quirk: ({ path }) => (path === '/ServiceProviderConfig' ? { status, body: {} } : undefined),
      })
      expect((await pullFrom(directory)).ids).toHaveLength(3)
    }
  })
})

describe('Pulled.confirmAbsent', () => {
  it('adds a group that the list left out and the directory knows', async () => {
    const groups = manyGroups(12)
    await using directory = await startDirectory(groups, {
      quirk: (asked) => (asked.path === '/Groups' ? usualReply(groups.slice(0, 10), asked) : undefined),
    })
    const { ids, groups: found } = await pullFrom(directory, {}, ['11', '99'])
    expect(ids).toEqual([...idsOf(groups.slice(0, 10)), '11'])
    expect(found.get('11')?.members?.count).toBe(1)
  })

  it.each(['per_group', 'off'] as const)(
    'asks once for a group it looked up, members %s',
    async (members) => {
      const groups = groupsNamed('1', '2')
      await using directory = await startDirectory(groups, {
        quirk: (asked) => (asked.path === '/Groups' ? usualReply(groups.slice(0, 1), asked) : undefined),
      })
      const { groups: found } = await pullFrom(directory, { members }, ['2'])
      expect(found.get('2')?.members?.count).toBe(members === 'off' ? undefined : 1)
      expect(directory.asked.filter(({ path }) => path === '/Groups/2')).toHaveLength(1)
    },
  )

  it.each([
    ['more are absent than it looks up', { lookUps: 1 }, undefined],
    ['the directory gives no single group', {}, { status: 405, body: {} }],
    ['the directory gives something else than the group', {}, { status: 200, body: { Resources: [] } }],
    ['the directory gives another group', {}, { status: 200, body: { id: '1', displayName: 'One' } }],
  ])('reads the list again when %s', async (_name, limits, reply) => {
    const groups = manyGroups(12)
    await using directory = await startDirectory(groups, {
      quirk: (asked) => {
        if (asked.path === '/Groups')
          return usualReply(asked.before < 2 ? groups.slice(0, 10) : groups, asked)
        return asked.path === '/ServiceProviderConfig' ? undefined : reply
      },
    })
    const { ids } = await pullFrom(directory, { limits }, ['11', '12', '99'])
    expect(ids).toEqual(idsOf(groups))
  })
})
