import { describe, expect, it } from 'vitest'
import {
  groupsNamed,
  listOf,
  manyGroups,
  startDirectory,
  usualReply,
  type DirectoryGroup,
  type Reply,
} from '../../../support/scim/faulty-directory.ts'
import { failureOf, idsOf, listQueries, ofList, pullFrom } from '../../../support/scim/pull.ts'

describe('pull and members', () => {
  it('distinguishes a missing list from an empty one', async () => {
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
        { id: 'a', type: 'Group', displayName: 'A', active: null, email: null },
        { id: 'b', type: null, displayName: null, active: null, email: null },
      ],
    ])
  })

  it('requests each group if the list has no members', async () => {
    await using directory = await startDirectory(manyGroups(15))
    const { groups } = await pullFrom(directory, { members: 'per_group' })
    expect(groups.values().map(({ members }) => members?.read()[0]?.id)).toEqual(
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

  it.each<[string, Reply]>([
    ['400', { status: 400, body: {} }],
    ['401', { status: 401, body: {} }],
    ['403', { status: 403, body: {} }],
    ['404, though it is listed', { status: 404, body: {} }],
    ['500', { status: 500, body: {} }],
    ['no answer', { send: (response) => response.destroy() }],
    ['another group', { body: { id: '3', displayName: 'Other' } }],
    ['no group', { body: { Resources: [] } }],
  ])('leaves members unknown and warns if a group is answered with %s', async (_name, reply) => {
    await using directory = await startDirectory(groupsNamed('1', 'a/b', '3'), {
      quirk: ({ path }) => (path === '/Groups/a%2Fb' ? reply : undefined),
    })
    const { groups, warnings } = await pullFrom(directory, { members: 'per_group' })
    expect(groups.values().map(({ members }) => members?.count)).toEqual([1, undefined, 1])
    expect(warnings.join()).toContain('(the first: "a/b")')
  })

  it('fails if the members of too many groups are unreadable', async () => {
    await using directory = await startDirectory(manyGroups(30), {
      quirk: ({ path }) => (/^\/Groups\/[123]$/.test(path) ? { status: 403, body: {} } : undefined),
    })
    const members = 'per_group'
    expect(await failureOf(directory, { members, mayMiss: 2 })).toBe('directory_unauthorized')
    expect((await pullFrom(directory, { members, mayMiss: 3 })).ids).toHaveLength(30)
  })

  it('requests a group by its id with any characters', async () => {
    await using directory = await startDirectory(groupsNamed('a/b', 'c?d=e', 'f#g', '100%25', 'ä b'))
    const { groups } = await pullFrom(directory, { members: 'per_group' })
    expect(groups.values().map(({ members }) => members?.count)).toEqual([1, 1, 1, 1, 1])
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
    ['a cursor that is none', { Resources: [{ id: '1', displayName: 'A' }], nextCursor: { page: 2 } }],
  ])('fails on %s', async (_name, body) => {
    await using directory = await startDirectory([], { quirk: ofList(() => ({ body })) })
    expect(await failureOf(directory)).toBe('directory_invalid_response')
  })

  it('reads names into a form that is safe in every store and terminal', async () => {
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

  it('ignores an invalid externalId', async () => {
    const group = { id: '1', displayName: 'A' }
    await using directory = await startDirectory([], {
      quirk: ofList(() => ({ body: { totalResults: 1, Resources: [{ ...group, externalId: {} }] } })),
    })
    expect((await pullFrom(directory)).groups.get('1')?.externalId).toBeNull()
  })

  it('takes the id of a member from its address if there is nothing else', async () => {
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
    ['bytes in all', { memoryBytes: 100 }],
    ['elements of a reply', { responseElements: 5 }],
    ['depth of a reply', { responseDepth: 3 }],
  ])('stops at its limit of %s', async (_name, limits) => {
    await using directory = await startDirectory(manyGroups(25))
    expect(await failureOf(directory, { limits })).toBe('directory_too_large')
  })

  it.each([
    ['members of a group', { membersPerGroup: 0 }],
    ['members in all', { members: 24 }],
  ])('stops at its limit of %s when it requests each group', async (_name, limits) => {
    await using directory = await startDirectory(manyGroups(25))
    expect(await failureOf(directory, { members: 'per_group', limits })).toBe('directory_too_large')
  })

  it('names a group with too many members', async () => {
    const members = [{ value: 'ann' }, { value: 'bob' }]
    const groups = [...groupsNamed('1'), { id: '2', displayName: 'Large', members }]
    await using directory = await startDirectory(groups)
    for (const mode of ['inline', 'per_group'] as const) {
      const pulling = pullFrom(directory, { members: mode, limits: { membersPerGroup: 1 } })
      await expect(pulling).rejects.toThrow('the group "2"')
    }
  })

  it('stops when the token is rejected on the way', async () => {
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
  const unlisted = (scimId: string) =>
    `1 group readable by id, but in no list of groups: deleted here (the first: "${scimId}")`

  it('counts a group as deleted if two lists lack it, even if it is readable by its id', async () => {
    const groups = manyGroups(12)
    await using directory = await startDirectory(groups, {
      quirk: (asked) => (asked.path === '/Groups' ? usualReply(groups.slice(0, 10), asked) : undefined),
    })
    const pulled = await pullFrom(directory, {}, ['11', '99'])
    expect(pulled).toMatchObject({
      ids: idsOf(groups.slice(0, 10)),
      confirmed: true,
      warnings: [unlisted('11')],
    })
    expect(pulled.unlisted).toEqual(new Set(['11']))
  })

  it('does not read the list again if the directory has none of the groups', async () => {
    await using directory = await startDirectory(manyGroups(3))
    expect(await pullFrom(directory, {}, ['98', '99'])).toMatchObject({ confirmed: true, warnings: [] })
    expect(listQueries(directory)).toHaveLength(1)
  })

  it.each<[string, object, Reply | undefined]>([
    ['more are absent than it looks up', { lookUps: 1 }, undefined],
    ['the group is there', {}, undefined],
    ['the directory gives no single group', {}, { status: 405, body: {} }],
    ['the directory refuses the token for it', {}, { status: 403, body: {} }],
    ['the directory fails at it', {}, { status: 500, body: {} }],
    ['the directory wants to be asked later', {}, { status: 429, body: {} }],
    ['the directory hangs up', {}, { send: (response) => response.destroy() }],
    ['the directory gives something else than the group', {}, { status: 200, body: { Resources: [] } }],
    ['the directory gives another group', {}, { status: 200, body: { id: '1', displayName: 'One' } }],
  ])('reads the list again when %s', async (_name, limits, reply) => {
    const groups = manyGroups(12)
    await using directory = await startDirectory(groups, {
      quirk: (asked) => {
        if (asked.path === '/Groups') return usualReply(asked.before < 1 ? groups.slice(0, 9) : groups, asked)
        return asked.path === '/ServiceProviderConfig' ? undefined : reply
      },
    })
    const { ids, confirmed } = await pullFrom(directory, { limits }, ['11', '12', '99'])
    expect(ids).toEqual(idsOf(groups))
    expect(confirmed).toBe(true)
  })

  it('confirms nothing if the second list may be incomplete', async () => {
    const groups = manyGroups(12)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query, before }) => {
        const { totalResults, ...list } = listOf(groups.slice(0, 9), query)
        return { body: before === 0 ? { ...list, totalResults } : list }
      }),
    })
    expect(await pullFrom(directory, {}, ['11'])).toMatchObject({ complete: true, confirmed: false })
  })
})
