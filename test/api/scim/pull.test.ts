import { describe, expect, it } from 'vitest'
import { createDirectoryClient } from '../../../api/scim/directory-client.ts'
import { SyncFailure } from '../../../api/scim/failures.ts'
import { SYNC_LIMITS, type SyncLimits } from '../../../api/scim/limits.ts'
import { pull, type MemberMode } from '../../../api/scim/pull.ts'
import {
  DIRECTORY_TOKEN,
  groupsNamed,
  listOf,
  manyGroups,
  startDirectory,
  usualReply,
  type DirectoryGroup,
  type Quirk,
} from '../../support/faulty-directory.ts'

interface PullOptions {
  readonly members?: MemberMode
  readonly limits?: Partial<SyncLimits>
}

type Directory = Awaited<ReturnType<typeof startDirectory>>

/** Pulls from a directory, and looks up what is absent if there is any. */
async function pullFrom(
  { url }: Directory,
  { members = 'inline', limits = {} }: PullOptions = {},
  absent?: string[],
) {
  const all = { ...SYNC_LIMITS, pageSize: 10, ...limits }
  const client = createDirectoryClient({
    url: new URL(url),
    token: DIRECTORY_TOKEN,
    reach: { allowLoopback: true, allowPrivate: false },
    limits: all,
    signal: new AbortController().signal,
    wait: async () => undefined,
  })
  try {
    const pulled = await pull({ client, limits: all, members, progress: () => undefined })
    if (absent !== undefined) await pulled.confirmAbsent(absent)
    const ids = [...pulled.groups.keys()].toSorted((a, b) => Number(a) - Number(b))
    return { ...pulled, ids }
  } finally {
    await client.close()
  }
}

async function failureOf(directory: Directory, options?: PullOptions): Promise<string> {
  const error = await pullFrom(directory, options).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof SyncFailure)) throw new Error(`No SyncFailure, but ${String(error)}`)
  return error.failure
}

const idsOf = (groups: readonly DirectoryGroup[]) => groups.map((group) => group.id)
const lists = ({ asked }: Directory) =>
  asked.filter(({ path }) => path === '/Groups').map(({ query }) => query)

/** A quirk of the list of groups alone. */
function ofList(quirk: Quirk): Quirk {
  return (asked) => (asked.path === '/Groups' ? quirk(asked) : undefined)
}

describe('pull by index', () => {
  it.each([0, 1, 9, 10, 11, 35])('reads %i groups and knows that it was all of them', async (count) => {
    await using directory = await startDirectory(manyGroups(count))
    const { ids, complete } = await pullFrom(directory)
    expect(ids).toEqual(idsOf(directory.groups))
    expect(complete).toBe(true)
  })

  it('goes on by what it received where pages are smaller than asked for', async () => {
    await using directory = await startDirectory(manyGroups(25), { maxPage: 4 })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
    expect(lists(directory).map((query) => query.get('startIndex'))).toEqual([
      '1',
      '5',
      '9',
      '13',
      '17',
      '21',
      '25',
      '26',
    ])
  })

  it.each(['resources', 'RESOURCES'])('reads a list under the key %s', async (key) => {
    const groups = manyGroups(3)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) => {
        const { Resources, ...rest } = listOf(groups, query)
        return { body: { ...rest, [key]: Resources } }
      }),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(3)
  })

  it('takes an empty list without Resources for empty', async () => {
    await using directory = await startDirectory([], { quirk: ofList(() => ({ body: { totalResults: 0 } })) })
    expect(await pullFrom(directory)).toMatchObject({ ids: [], complete: true })
  })

  it('is not fooled by a total that counts the page', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) => {
        const list = listOf(groups, query)
        return { body: { ...list, totalResults: list.Resources.length } }
      }),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
  })

  it('ends where a page past the end is the first page again', async () => {
    const groups = manyGroups(20)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) =>
        Number(query.get('startIndex')) > 20
          ? { body: listOf(groups, new URLSearchParams({ startIndex: '1', count: '10' })) }
          : undefined,
      ),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(20)
  })

  it('fails where every page is the first page', async () => {
    const groups = manyGroups(30)
    await using directory = await startDirectory(groups, {
      quirk: ofList(() => ({ body: listOf(groups, new URLSearchParams({ count: '10' })) })),
    })
    expect(await failureOf(directory)).toBe('directory_incomplete')
  })

  it('fails where fewer groups come than the directory counts, twice', async () => {
    const groups = manyGroups(5)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) => ({ body: { ...listOf(groups, query), totalResults: 6 } })),
    })
    expect(await failureOf(directory)).toBe('directory_incomplete')
    expect(lists(directory).filter((query) => query.get('startIndex') === '1')).toHaveLength(2)
  })

  it('reads the list a second time when groups were deleted while it read, and misses none', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ before }) => {
        // Between the first page and the second, which now begins two groups later.
        if (before === 1) groups.splice(0, 2)
        return undefined
      }),
    })
    const { ids } = await pullFrom(directory)
    for (const id of idsOf(groups)) expect(ids).toContain(id)
  })

  it('keeps to the total where only the first page tells it', async () => {
    const groups = manyGroups(15)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query, before }) => {
        const { totalResults, ...list } = listOf(groups, query)
        return { body: before === 0 ? { ...list, totalResults } : list }
      }),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it('lets nothing count as deleted where there is no total', async () => {
    const groups = manyGroups(15)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) => {
        const { totalResults: _dropped, ...list } = listOf(groups, query)
        return { body: list }
      }),
    })
    const { ids, complete } = await pullFrom(directory)
    expect(ids).toHaveLength(15)
    expect(complete).toBe(false)
  })

  it.each([400, 501])('asks without paging when paging is answered with %i', async (status) => {
    const groups = manyGroups(15)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) =>
        query.has('startIndex') && query.get('startIndex') !== '1'
          ? { status, body: {} }
          : { body: listOf(groups, new URLSearchParams({ count: query.has('count') ? '10' : '1000' })) },
      ),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it('takes a 404 past the end for the end once the total is reached, and not before', async () => {
    const groups = manyGroups(15)
    let known = groups.length
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) =>
        Number(query.get('startIndex')) > known ? { status: 404, body: {} } : undefined,
      ),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
    known = 10
    await expect(pullFrom(directory)).rejects.toThrow('status 404')
  })

  it('asks without excludedAttributes when that is refused', async () => {
    await using directory = await startDirectory(manyGroups(15), {
      quirk: ofList(({ query }) => (query.has('excludedAttributes') ? { status: 400, body: {} } : undefined)),
    })
    const { ids, groups } = await pullFrom(directory, { members: 'off' })
    expect(ids).toHaveLength(15)
    expect([...groups.values()].every(({ members }) => members === null)).toBe(true)
  })
})

describe('pull by cursor', () => {
  const cursor = true

  it('follows the cursors to the end', async () => {
    await using directory = await startDirectory(manyGroups(25), { cursor })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(directory.groups), complete: true })
    expect(lists(directory).map((query) => [query.get('cursor'), query.has('startIndex')])).toEqual([
      ['', false],
      ['10', false],
      ['20', false],
    ])
  })

  it('needs no total to know that it was all', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      cursor,
      quirk: ofList(({ query }) => {
        const { totalResults: _dropped, ...list } = listOf(groups, query)
        return { body: list }
      }),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it('follows a cursor that comes unasked', async () => {
    const groups = manyGroups(25)
    await using directory = await startDirectory(groups, {
      quirk: ofList(({ query }) =>
        query.has('cursor')
          ? undefined
          : { body: listOf(groups, new URLSearchParams({ cursor: '', count: '10' })) },
      ),
    })
    expect(await pullFrom(directory)).toMatchObject({ ids: idsOf(groups), complete: true })
  })

  it('begins anew when a cursor expires', async () => {
    await using directory = await startDirectory(manyGroups(25), {
      cursor,
      quirk: ofList(({ before }) =>
        before === 1 ? { status: 400, body: { scimType: 'expiredCursor' } } : undefined,
      ),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
  })

  it('asks by index where every cursor expires', async () => {
    await using directory = await startDirectory(manyGroups(25), {
      cursor,
      quirk: ofList(({ query }) =>
        query.get('cursor') ? { status: 400, body: { scimType: 'expiredCursor' } } : undefined,
      ),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
    expect(lists(directory).filter((query) => query.get('cursor') === '')).toHaveLength(3)
  })

  it('asks by index where cursors are offered and then refused', async () => {
    await using directory = await startDirectory(manyGroups(25), {
      cursor,
      quirk: ofList(({ query }) => (query.has('cursor') ? { status: 400, body: {} } : undefined)),
    })
    expect((await pullFrom(directory)).ids).toHaveLength(25)
  })

  it('fails where cursors lead in a circle, or on and on to nothing new', async () => {
    const groups = manyGroups(5)
    const turn = (next: (before: number) => string) =>
      ofList(({ query, before }) => ({ body: { ...listOf(groups, query), nextCursor: next(before) } }))
    await using circle = await startDirectory(groups, { cursor, quirk: turn((before) => String(before % 3)) })
    expect(await failureOf(circle)).toBe('directory_incomplete')
    await using desert = await startDirectory(groups, { cursor, quirk: turn((before) => `more-${before}`) })
    expect(await failureOf(desert)).toBe('directory_incomplete')
  })
})

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
    expect(lists(directory).every((query) => query.get('excludedAttributes') === 'members')).toBe(true)
  })

  it.each([404, 410])(
    'drops a group that is deleted (%i) between the list and its own request',
    async (status) => {
      await using directory = await startDirectory(manyGroups(3), {
        quirk: ({ path }) => (path === '/Groups/2' ? { status, body: {} } : undefined),
      })
      expect((await pullFrom(directory, { members: 'per_group' })).ids).toEqual(['1', '3'])
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
    ['the directory gives no single group', {}, 405],
  ])('reads the list again when %s', async (_name, limits, status) => {
    const groups = manyGroups(12)
    await using directory = await startDirectory(groups, {
      quirk: (asked) => {
        if (asked.path === '/Groups')
          return usualReply(asked.before < 2 ? groups.slice(0, 10) : groups, asked)
        return status !== undefined && asked.path !== '/ServiceProviderConfig'
          ? { status, body: {} }
          : undefined
      },
    })
    const { ids } = await pullFrom(directory, { limits }, ['11', '12', '99'])
    expect(ids).toEqual(idsOf(groups))
  })
})
