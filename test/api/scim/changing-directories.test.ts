/** CONTRACT 5: what a second sync does to a changed directory: a group or member is removed only when its answer proves it. */
import { describe, expect, it } from 'vitest'
import { FAILURES, type Failure } from '../../../api/scim/failures.ts'
import {
  groupsNamed,
  hangUp,
  listOf,
  manyGroups,
  ofList,
  startDirectory,
  startIndexOf,
  status,
  usualReply,
  type Asked,
  type DirectoryGroup,
  type Quirk,
  type Reply,
} from '../../support/scim/faulty-directory.ts'
import { useAccounts } from '../../support/scim/sync.ts'

const connect = useAccounts()

/** Syncs an account with a directory, and again once requests are answered by this; resolves to the second job and more. */
async function syncTwice(groups: readonly DirectoryGroup[], changed: Quirk, mode?: 'inline' | 'per_group') {
  let isChanged = false
  await using directory = await startDirectory([...groups], {
    quirk: (asked) => (isChanged ? changed(asked) : undefined),
  })
  const account = await connect(directory.url, mode)
  expect(await account.sync()).toMatchObject({ status: 'succeeded', synced_groups: groups.length })
  const known = (await account.groups()).data
  isChanged = true
  const job = await account.sync()
  return { job, known, account, warnings: (await account.changes(job.id)).warnings }
}

const ten = manyGroups(10)
const people = (count: number, prefix = 'user') =>
  Array.from({ length: count }, (_, index) => ({ value: `${prefix}-${String(index).padStart(3, '0')}` }))
const team = (id: string, count: number, more: Partial<DirectoryGroup> = {}): DirectoryGroup => ({
  id,
  displayName: `Team ${id}`,
  members: people(count, `user-${id}`),
  ...more,
})
const renamed = (prefix: string, more: (id: string) => object = () => ({})) =>
  ten.map((group) => ({ ...group, id: prefix + group.id, ...more(group.id) }))
const withExternalId = (id: string) => ({ externalId: `external-${id}` })
const bare = (groups: readonly DirectoryGroup[]) => groups.map(({ members: _members, ...group }) => group)

/** The directory before and after, how many groups the second sync deletes or why it fails, and more. */
type Change = readonly [
  before: readonly DirectoryGroup[],
  after: readonly DirectoryGroup[],
  ends: number | Failure,
  expected?: {
    /** How many groups keep their id: by default as many as there were. */
    readonly same?: number
    /** How many members the group with the first one's id has in the end. */
    readonly members?: number | null
  },
]
const [tooMuch, empty] = ['deletion_threshold_exceeded', 'directory_empty'] as const

/** Ten groups, of which this is the first. */
const first = (group: DirectoryGroup) => [group, ...ten.slice(1)]
const [e1, e2] = [{ externalId: 'e1' }, { externalId: 'e2' }]
const [small, large, named] = [team('1', 1), team('1', 60), team('1', 2, e1)]
const interns = team('1', 1, { ...e2, displayName: 'Interns' })
const reversed = { ...large, members: people(60, 'user-1').toReversed() }
const emptied = renamed('', () => ({ members: [] }))

const CHANGES: Readonly<Record<string, Change>> = {
  'loses all of its groups': [ten, [], empty],
  'loses half of its groups': [manyGroups(100), manyGroups(50), tooMuch],
  'renames a group': [ten, first(team('1', 1, { displayName: 'Renamed' })), 0],
  'makes a group anew with its externalId': [first(named), first(team('new', 2, e1)), 0],
  'gives the id of a group to another one': [first(named), first(interns), 0, { members: 1 }],
  'gives the externalId of a group to a new one': [
    first(named),
    [...first(team('1', 2, e2)), team('new', 2, e1)],
    0,
    { same: 10 },
  ],
  'makes two groups of one with its externalId': [
    first(named),
    [...first(team('n1', 2, e1)), team('n2', 2, e1)],
    1,
    { same: 9 },
  ],
  'gives one externalId to two groups, and makes both anew': [
    [named, team('2', 2, e1)],
    [team('n1', 2, e1), team('n2', 2, e1)],
    2,
    { same: 0 },
  ],
  'makes all groups anew': [ten, renamed('new-'), tooMuch],
  'makes all groups anew with their externalIds': [
    renamed('', withExternalId),
    renamed('new-', withExternalId),
    0,
  ],
  'gives empty lists of members but for one': [
    ten,
    [...emptied.slice(1), ...ten.slice(0, 1)],
    0,
    { members: 1 },
  ],
  'cuts its lists of members at 100': [first(team('1', 150)), first(team('1', 100)), 0, { members: 100 }],
  'changes all members of a group for others': [
    [large, team('2', 2)],
    [{ ...large, members: people(60, 'other') }, team('2', 2)],
    tooMuch,
    { members: 60 },
  ],
  'sorts its members otherwise': [[large], [reversed], 0, { members: 60 }],
  'sends no attribute for the last member': [
    first(small),
    [...bare([small]), ...ten.slice(1)],
    0,
    { members: 0 },
  ],
  'sends null for the last member': [first(small), first({ ...small, members: null }), 0, { members: 0 }],
  'sends no members of its only group, which had one before': [[small], bare([small]), 0, { members: 0 }],
  'sends no members of a large group': [[large], bare([large]), tooMuch, { members: 60 }],
  'never sent members': [bare(ten), bare(ten), 0, { members: null }],
}

it.each(Object.entries(CHANGES))(
  'a second sync changes no more than the directory proves, if it %s',
  async (_name, [before, after, ends, expected = {}]) => {
    const second = await syncTwice(before, (asked) => usualReply(after, asked))
    const outcome = typeof ends === 'number' ? { deleted_groups: ends } : { error_message: FAILURES[ends] }
    expect(second.job).toMatchObject(outcome)
    const found = (await second.account.groups()).data
    expect(found).toHaveLength(typeof ends === 'number' ? after.length : Math.min(before.length, 100))
    const same = found.filter(({ id }) => second.known.some((group) => group.id === id))
    expect(same).toHaveLength(expected.same ?? second.known.length)
    if (expected.members === undefined) return
    expect(found.find(({ external_id }) => external_id === '1')?.member_count).toBe(expected.members)
  },
)

describe('a group that leaves the list', () => {
  const statuses = [404, 410, 400, 401, 403, 405, 408, 429, 500, 501, 503, 302]
  it.each<[string, Reply | undefined]>([
    ...statuses.map((code): [string, Reply] => [String(code), status(code)]),
    ['no answer', hangUp],
    ['a page for people', { send: (response) => response.end('<html></html>') }],
    ['an empty object', { body: {} }],
    ['null', { body: null }],
    ['the group as it was', undefined],
  ])('is deleted if its own request is answered with %s', async (_name, reply) => {
    const { job, warnings } = await syncTwice(ten, (asked) => {
      if (asked.path === '/Groups') return usualReply(ten.slice(0, 9), asked)
      return asked.path === '/Groups/10' ? reply : undefined
    })
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 9, deleted_groups: 1 })
    expect(warnings).toEqual([])
  })

  it.each<[string, (asked: Asked) => Reply | undefined, number]>([
    ['has it', () => undefined, 0],
    ['has it and no total', ({ query }) => ({ body: { Resources: listOf(ten, query).Resources } }), 0],
    ['fails', () => status(500), 1],
  ])('stays if only the first reading lacks it, and the second %s', async (_name, second, kept) => {
    let lists = 0
    const { job, account, warnings } = await syncTwice(ten, (asked) => {
      if (asked.path.startsWith('/Groups/')) return status(404)
      if (asked.path === '/Groups' && asked.query.get('startIndex') === '1') lists += 1
      // Another group in place of the last one, as if it had moved between two pages.
      if (lists === 1) return usualReply([...ten.slice(0, 9), ...groupsNamed('new')], asked)
      return lists > 1 ? second(asked) : undefined
    })
    expect(job).toMatchObject({ status: 'succeeded', deleted_groups: 0 })
    expect(Object.keys(await account.all())).toContain('Group 10')
    expect(warnings).toHaveLength(kept)
  })

  const groups = manyGroups(52)
  // As databases do that sort by a column with equal values: always the same rows.
  const shifted = [...groups.slice(0, 51), ...groups.slice(0, 1)]
  /** A page of at most 40, which the total counts alone. */
  const counted = ({ query }: Asked): Reply => {
    const list = listOf(groups, query, 40)
    return { body: { ...list, totalResults: list.Resources.length } }
  }
  const isLarge = (asked: Asked) => startIndexOf(asked) > 40 && Number(asked.query.get('count')) > 25
  const blanks: Reply = { send: (response) => response.end(' '.repeat(5 * 1024 * 1024)) }
  it.each<[string, Quirk]>([
    [
      'fails, and the total counts the page before',
      (asked) => (startIndexOf(asked) > 40 ? status(500) : counted(asked)),
    ],
    [
      'is too large, and the total counts the page before',
      (asked) => (isLarge(asked) ? blanks : counted(asked)),
    ],
    ['has a row of another page instead', ({ query }) => ({ body: listOf(shifted, query, 40) })],
    ...[52, 45].map((sorted): [string, Quirk] => [
      `has a row of another page instead, by cursor without a total, but ${sorted} rows if it is to sort`,
      ({ query }) => {
        const rows = shifted.slice(0, query.has('sortBy') ? sorted : 52)
        const begin = { Resources: rows.slice(0, 40), nextCursor: 'last' }
        return { body: query.has('cursor') ? { Resources: rows.slice(40) } : begin }
      },
    ]),
    [
      'is given by its size alone, and ignores cursors',
      (asked) => (asked.query.has('startIndex') ? status(400) : counted(asked)),
    ],
    // As LDAP servers with a limit of size do.
    [
      'is not served, since the list ends at 50',
      ({ query }) => ({ body: listOf(groups.slice(0, 50), query, 20) }),
    ],
  ])('stays if its page %s', async (_name, quirk) => {
    const { job } = await syncTwice(groups, ofList(quirk))
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 52, deleted_groups: 0 })
  })

  it('is deleted if its own request is answered with 404, though the list gives no total', async () => {
    const two = manyGroups(2)
    const { job } = await syncTwice(manyGroups(3), (asked) =>
      asked.path === '/Groups'
        ? { body: { ...listOf(two, asked.query), totalResults: undefined } }
        : usualReply(two, asked),
    )
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 2, deleted_groups: 1 })
  })

  it('stays if the list has a group without a usable id', async () => {
    const [, second, third] = manyGroups(3)
    const { job } = await syncTwice(manyGroups(3), ({ path, query }) => {
      if (path === '/ServiceProviderConfig') return { body: { pagination: { cursor: true } } }
      if (path !== '/Groups') return undefined
      const isLast = query.get('cursor') === 'last'
      const page = isLast ? { Resources: [{}] } : { Resources: [second, third], nextCursor: 'last' }
      return { body: { totalResults: 2, ...page } }
    })
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 3, deleted_groups: 0 })
  })
})

describe.each([true, false])('a list that ignores startIndex, and count: %s', (ignoresCount) => {
  /** The newest 50 groups at most, whatever is requested, as if there were no more. */
  const capped = (groups: readonly DirectoryGroup[]): Quirk =>
    ofList(({ query }) => {
      const newest = groups.slice(-50)
      const count = ignoresCount ? 50 : Number(query.get('count') ?? 50)
      return { body: { totalResults: newest.length, Resources: newest.slice(0, count) } }
    })
  const noSingleGroups: Quirk = ({ path }) => (path.startsWith('/Groups/') ? status(404) : undefined)
  const groups = manyGroups(50)

  it.each<[string, DirectoryGroup[], Quirk | undefined, [number, number, number]]>([
    ['deletes no group that answers by its id', manyGroups(55), undefined, [55, 0, 5]],
    ['deletes a group that is answered with 404', groups.slice(1), undefined, [49, 1, 0]],
    ['deletes nothing if it answers for no group', groups.slice(1), noSingleGroups, [50, 0, 1]],
  ])('%s, and the job says that it may be capped', async (_name, after, quirk, [synced, deleted, kept]) => {
    const changed: Quirk = (asked) => capped(after)(asked) ?? quirk?.(asked) ?? usualReply(after, asked)
    const { job, warnings } = await syncTwice(groups, changed)
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: synced, deleted_groups: deleted })
    expect(warnings.join()).toContain('may be capped')
    if (kept > 0) expect(warnings.join()).toMatch(new RegExp(`${kept} groups? not in the list`))
  })
})

/** Lists without members; the first requests for each group are answered by this. */
const withoutMembers = (reply: Reply, most: number): Quirk => {
  const asked = new Map<string, number>()
  return (request) => {
    if (request.path === '/Groups') return usualReply(bare(ten), request)
    const before = asked.get(request.path) ?? 0
    asked.set(request.path, before + 1)
    return request.path.startsWith('/Groups/') && before < most ? reply : undefined
  }
}

const mostlyBare = [...bare(ten.slice(0, 6)), ...ten.slice(6, 7), ...bare(ten.slice(7))]
it.each<[string, 'inline' | 'per_group', Quirk]>([
  ['a group that is refused', 'per_group', ({ path }) => (path === '/Groups/9' ? status(403) : undefined)],
  ['a list that leaves members out', 'inline', ofList((asked) => usualReply(bare(ten), asked))],
  [
    'a list that leaves out those of a few groups',
    'inline',
    ofList((asked) => usualReply(mostlyBare, asked)),
  ],
  [
    'a list that leaves out those of a few groups, which are forbidden',
    'inline',
    (asked) => (/^\/Groups\/(?:8|9|10)$/.test(asked.path) ? status(403) : usualReply(mostlyBare, asked)),
  ],
  ['such a list, of groups that fail once', 'inline', withoutMembers(status(500), 1)],
  [
    'such a list, of groups whose members are a word',
    'inline',
    (asked) => {
      if (asked.path === '/Groups') return usualReply(bare(ten), asked)
      const id = asked.path.replace('/Groups/', '')
      return id === asked.path ? undefined : { body: { id, displayName: `Group ${id}`, members: 'some' } }
    },
  ],
  [
    'a list that refuses members, of groups that are forbidden',
    'inline',
    ({ path, query }) => {
      if (path === '/Groups') return query.has('excludedAttributes') ? undefined : status(400)
      return /^\/Groups\/(?:1|7|8|9|10)$/.test(path) ? status(403) : undefined
    },
  ],
])('the members of %s stay as they were', async (_name, mode, quirk) => {
  const groups: DirectoryGroup[] = [...bare(ten.slice(0, 6)), ...ten.slice(6)]
  const { job, account } = await syncTwice(groups, quirk, mode)
  expect(job).toMatchObject({ status: 'succeeded', synced_groups: 10, deleted_groups: 0 })
  const members = groups.map((group) => [group.displayName, (group.members ?? []).map(({ value }) => value)])
  expect(await account.all()).toEqual(Object.fromEntries(members))
})

it.each([404, 403, 501, 500])(
  'the last member of a group leaves with the list, if single groups are answered with %i',
  async (code) => {
    const listed = [...ten.slice(0, 9), ...bare(ten.slice(9))]
    const { job, account } = await syncTwice(ten, (asked) =>
      asked.path.startsWith('/Groups/') ? status(code) : usualReply(listed, asked),
    )
    expect(job.status).toBe('succeeded')
    expect(await account.all()).toMatchObject({ 'Group 9': ['user-of-9'], 'Group 10': [] })
  },
)

it('groups keep their names if a request for members by name leaves all other attributes out', async () => {
  const unfilled = bare(ten.slice(0, 2))
  await using directory = await startDirectory(unfilled, {
    quirk: ofList(({ query }) =>
      query.has('attributes')
        ? { body: { ...listOf(unfilled, query), Resources: unfilled.map(({ id }) => ({ id })) } }
        : undefined,
    ),
  })
  const account = await connect(directory.url)
  await account.sync()
  expect(Object.keys(await account.all()).toSorted()).toEqual(['Group 1', 'Group 2'])
})
