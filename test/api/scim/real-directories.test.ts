/** Directories as they are met, most of them known from reports of their users: how one sync with each of them ends. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MemberMode } from '../../../api/scim/directory/connection-options.ts'
import { FAILURES, type Failure } from '../../../api/scim/failures.ts'
import {
  groupsNamed,
  listOf,
  manyGroups,
  startDirectory,
  usualReply,
  type Asked,
  type DirectoryGroup,
  type Quirk,
  type Reply,
} from '../../support/faulty-directory.ts'
import { TemporaryFolders } from '../../support/nightly.ts'
import { ofList } from '../../support/pull.ts'
import { startSyncApi } from '../../support/sync.ts'

const folders = new TemporaryFolders()
let service: Awaited<ReturnType<typeof startSyncApi>>

beforeAll(async () => {
  service = await startSyncApi({ DATA_DIR: folders.make() })
})

afterAll(async () => {
  await service.close()
  folders.removeAll()
})

let accounts = 0

async function connect(url: string, members: MemberMode) {
  accounts += 1
  return await service.connect(url, { account: `account-${accounts}`, members })
}

/** What the log says beside the end of a job. */
function warningsOf(jobId: string): string {
  return JSON.stringify(service.messages().find((line) => line['job_id'] === jobId)?.['warnings'] ?? [])
}

const startIndexOf = ({ query }: Asked) => Number(query.get('startIndex') ?? 1)
const countOf = ({ query }: Asked, most: number) => Math.min(Number(query.get('count') ?? most), most)
const refused: Reply = { status: 400, body: { scimType: 'invalidValue' } }

/** The page that was requested, with at most `most` groups, and further attributes. */
function page(groups: readonly DirectoryGroup[], asked: Asked, most = 100, more: object = {}): Reply {
  const query = new URLSearchParams({
    startIndex: String(startIndexOf(asked)),
    count: String(countOf(asked, most)),
  })
  return { body: { ...listOf(groups, query), ...more } }
}

/** A quirk of requests for a page past the end. */
const pastEnd = (groups: readonly DirectoryGroup[], reply: Reply): Quirk =>
  ofList((asked) => (startIndexOf(asked) > groups.length ? reply : undefined))

/** One odd group between two others. */
const oddGroup = (group: unknown): Quirk => {
  const [first, last] = groupsNamed('1', '3')
  return ofList(() => ({ body: { totalResults: 3, Resources: [first, group, last] } }))
}

const oddMembers = (members: unknown) => oddGroup({ id: 'odd', displayName: 'Odd', members })

/** A directory that pages by cursor, whether it says so or not; `only`: refuses requests without one. */
function byCursor(
  groups: readonly DirectoryGroup[],
  { only = false, says = true, total = true, most = 50 }: Readonly<Record<string, unknown>> = {},
): Quirk {
  return (asked) => {
    const { path, query } = asked
    if (path === '/ServiceProviderConfig')
      return says === true ? { body: { pagination: { cursor: true } } } : undefined
    if (path !== '/Groups') return undefined
    const cursor = query.get('cursor')
    if (cursor === null)
      return only === true ? refused : page(groups.slice(0, 100), { ...asked, query: new URLSearchParams() })
    const first = Number(cursor || 0)
    if (countOf(asked, 1000) > Number(most)) return { status: 400, body: { scimType: 'invalidCount' } }
    const next = first + countOf(asked, Number(most))
    return {
      body: {
        Resources: groups.slice(first, next),
        ...(total === true ? { totalResults: groups.length } : {}),
        ...(next < groups.length ? { nextCursor: String(next) } : {}),
      },
    }
  }
}

/** Answers once it was asked so many times for the list. */
const faultsFirst = (faults: number, reply: Reply): Quirk =>
  ofList(({ before }) => (before < faults ? reply : undefined))

const status = (code: number, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status: code,
  headers,
  body: { status: String(code) },
})
const hangUp: Reply = { send: (response) => response.destroy() }
const halfAReply: Reply = {
  send: (response) => {
    response.writeHead(200, { 'Content-Length': '100000' }).write('{"Resou')
    setTimeout(() => response.destroy(), 10)
  },
}
const inParts = (body: unknown): Reply => ({
  send: (response) => {
    const parts = JSON.stringify(body).match(/.{1,50}/gs) ?? []
    const timer = setInterval(() => {
      const part = parts.shift()
      if (part !== undefined) return response.write(part)
      clearInterval(timer)
      return response.end()
    }, 1)
  },
})
const config =
  (reply: Reply): Quirk =>
  ({ path }) =>
    path === '/ServiceProviderConfig' ? reply : undefined

interface Case {
  readonly groups?: DirectoryGroup[]
  readonly quirk?: Quirk
  readonly members?: MemberMode
  /** The groups that are there in the end, or the cause of the failure. */
  readonly ends: number | Failure
  /** The members of the group "odd". */
  readonly odd?: readonly string[] | null
  readonly warning?: string
}

const some = manyGroups(3)
const hundreds = manyGroups(250)

const PAGING: Readonly<Record<string, Case>> = {
  'gives its first page whatever is requested, and counts it alone': {
    quirk: ofList(() => ({ body: listOf(hundreds.slice(0, 100), new URLSearchParams({ count: '100' })) })),
    ends: 'directory_incomplete',
  },
  'gives its first page whatever is requested, and counts all': {
    quirk: ofList(() => ({ body: { ...listOf(hundreds, new URLSearchParams({ count: '100' })) } })),
    ends: 'directory_incomplete',
  },
  'gives all groups whatever is requested': {
    quirk: ofList(() => ({ body: listOf(hundreds, new URLSearchParams({ count: '1000' })) })),
    ends: 250,
  },
  'has as many groups as a page, and answers with the first page past the end': {
    groups: hundreds.slice(0, 100),
    quirk: ofList((asked) =>
      startIndexOf(asked) > 100
        ? page(hundreds.slice(0, 100), { ...asked, query: new URLSearchParams() })
        : undefined,
    ),
    ends: 100,
  },
  'counts the page for the total': {
    quirk: ofList((asked) => {
      const list = listOf(
        hundreds,
        new URLSearchParams({ startIndex: String(startIndexOf(asked)), count: String(countOf(asked, 100)) }),
      )
      return { body: { ...list, totalResults: list.Resources.length } }
    }),
    ends: 250,
  },
  'gives no total': {
    quirk: ofList((asked) => page(hundreds, asked, 100, { totalResults: undefined })),
    ends: 250,
  },
  'gives its total as text': {
    quirk: ofList((asked) => page(hundreds, asked, 100, { totalResults: '250' })),
    ends: 250,
  },
  'gives a total below nothing': {
    quirk: ofList((asked) => page(hundreds, asked, 100, { totalResults: -1 })),
    ends: 250,
  },
  'gives smaller pages than requested': { quirk: ofList((asked) => page(hundreds, asked, 20)), ends: 250 },
  'says its largest page, and gives nothing for larger ones': {
    quirk: (asked) => {
      if (asked.path === '/ServiceProviderConfig')
        return { body: { filter: { maxResults: 40 }, pagination: { maxPageSize: 30 } } }
      if (asked.path !== '/Groups') return undefined
      return countOf(asked, 1000) > 30 ? { body: { totalResults: 0 } } : page(hundreds, asked)
    },
    ends: 250,
  },
  'refuses a count above 50': {
    quirk: ofList((asked) =>
      Number(asked.query.get('count') ?? 0) > 50 ? refused : page(hundreds, asked, 50),
    ),
    ends: 250,
  },
  'refuses any count': {
    quirk: ofList((asked) => (asked.query.has('count') ? refused : page(hundreds, asked, 20))),
    ends: 250,
  },
  'refuses paging with 501': {
    groups: some,
    quirk: ofList((asked) =>
      asked.query.has('startIndex') || asked.query.has('cursor') ? status(501) : page(some, asked),
    ),
    ends: 3,
  },
  'answers 404 past the end': { groups: hundreds, quirk: pastEnd(hundreds, status(404)), ends: 250 },
  'answers 400 past the end': { groups: hundreds, quirk: pastEnd(hundreds, refused), ends: 250 },
  'answers 500 past the end, which is the end of a full page': {
    groups: hundreds.slice(0, 200),
    quirk: pastEnd(hundreds.slice(0, 200), status(500)),
    ends: 200,
  },
  'hangs up past the end': {
    groups: hundreds.slice(0, 200),
    quirk: pastEnd(hundreds.slice(0, 200), hangUp),
    ends: 200,
  },
  'answers 429 past the end': {
    groups: hundreds.slice(0, 200),
    quirk: pastEnd(hundreds.slice(0, 200), status(429)),
    ends: 200,
  },
  'gives the last group again past the end': {
    quirk: ofList((asked) =>
      page(hundreds, {
        ...asked,
        query: new URLSearchParams({ startIndex: String(Math.min(startIndexOf(asked), 250)), count: '20' }),
      }),
    ),
    ends: 250,
  },
  'gives an empty page in the middle': {
    quirk: ofList((asked) =>
      page(hundreds, asked, 100, startIndexOf(asked) === 101 ? { Resources: [] } : {}),
    ),
    ends: 'directory_incomplete',
  },
  'repeats rows, and counts them': {
    quirk: ofList((asked) => page([...hundreds.slice(0, 100), ...hundreds.slice(90)], asked)),
    ends: 250,
  },
  'repeats a group on one page': {
    quirk: ofList((asked) => page([...some, ...some.slice(0, 1)], asked)),
    ends: 3,
  },
  'gives a single group without brackets': {
    quirk: ofList(() => ({ body: { totalResults: 1, Resources: some[0] } })),
    ends: 1,
  },
  'counts its groups from 0, so that none is the first': {
    quirk: ofList((asked) => ({
      body: {
        totalResults: 250,
        Resources: hundreds.slice(startIndexOf(asked), startIndexOf(asked) + 20),
      },
    })),
    ends: 'directory_incomplete',
  },
  'gives an empty list by its total alone': { quirk: ofList(() => ({ body: { totalResults: 0 } })), ends: 0 },
  'gives an empty list as null': {
    quirk: ofList(() => ({ body: { totalResults: 0, Resources: null } })),
    ends: 0,
  },
  'gives a bare array': { quirk: ofList(() => ({ body: some })), ends: 'directory_invalid_response' },
  'gives an error with status 200': {
    quirk: ofList(() => ({ body: { status: '404', detail: 'none' } })),
    ends: 'directory_invalid_response',
  },
  'gives pages with too many bytes': {
    quirk: ofList((asked) => {
      const groups = hundreds.map((group) => ({ ...group, note: 'x'.repeat(800_000) }))
      return page(groups, asked)
    }),
    ends: 250,
  },
  'pages by cursor': { quirk: byCursor(hundreds), ends: 250 },
  'pages by cursor alone, without a total': {
    quirk: byCursor(hundreds, { only: true, total: false }),
    ends: 250,
  },
  'pages by cursor when that is requested, and does not say so': {
    quirk: byCursor(hundreds, { says: false, most: 100 }),
    ends: 250,
  },
  'ends its cursors with an empty one': {
    quirk: ofList(() => ({ body: { Resources: some, nextCursor: '' } })),
    ends: 3,
  },
  'lets a cursor expire': {
    quirk: (asked) =>
      asked.query.get('cursor') === '50' && asked.before < 3
        ? { status: 400, body: { scimType: 'expiredCursor' } }
        : byCursor(hundreds)(asked),
    ends: 250,
  },
  'leads its cursors in a circle': {
    quirk: ofList(() => ({ body: { Resources: some, nextCursor: 'again' } })),
    ends: 'directory_incomplete',
  },
  'refuses a large count with a cursor': { quirk: byCursor(hundreds, { only: true, most: 10 }), ends: 250 },
}

const byCase = ofList(() => ({ body: { totalResults: 2, Resources: groupsNamed('g', 'G') } }))

const SHAPES: Readonly<Record<string, Case>> = {
  'members as one object': { quirk: oddMembers({ value: 'ann' }), ends: 3, odd: ['ann'] },
  'members as a list of ids': { quirk: oddMembers(['ann', 'bob']), ends: 3, odd: ['ann', 'bob'] },
  'members as a word': { quirk: oddMembers('none'), ends: 3, odd: null, warning: 'wrong type' },
  'members as null': { quirk: oddMembers(null), ends: 3, odd: null },
  'a null among the members': {
    quirk: oddMembers([null, { value: 'ann' }]),
    ends: 3,
    odd: ['ann'],
    warning: 'no usable id',
  },
  'an empty member': {
    quirk: oddMembers([{ value: '' }, { value: 'ann' }]),
    ends: 3,
    odd: ['ann'],
    warning: 'no usable id',
  },
  'a number too large to be exact for an id': {
    quirk: oddMembers([{ value: Number.MAX_SAFE_INTEGER + 2 }, { value: 42 }]),
    ends: 3,
    odd: ['42'],
    warning: 'no usable id',
  },
  'no usable member at all': { quirk: oddMembers([{}, null]), ends: 3, odd: null, warning: 'no usable id' },
  'a name of a member that is a number': {
    quirk: oddMembers([{ value: 'ann', display: 12 }]),
    ends: 3,
    odd: ['ann'],
  },
  'a name of a member that is an object': {
    quirk: oddMembers([{ value: 'ann', display: {} }]),
    ends: 3,
    odd: ['ann'],
    warning: 'wrong type',
  },
  'addresses of members alone': {
    quirk: oddMembers([
      { $ref: 'https://a.example/Users/ann%2F1' },
      { $ref: 'https://a.example/Users/bob/' },
    ]),
    ends: 3,
    odd: ['ann/1', 'bob'],
  },
  'nested groups': {
    quirk: oddMembers([{ value: '1', type: 'Group', $ref: '../Groups/1' }]),
    ends: 3,
    odd: ['1'],
  },
  'the same member again and again': {
    quirk: oddMembers([{ value: 'ann' }, { value: 'ann', display: 'Later' }, { value: 'Ann' }]),
    ends: 3,
    odd: ['Ann', 'ann'],
  },
  'a member that was taken out': {
    quirk: oddMembers([{ value: 'ann', operation: 'delete' }, { value: 'bob' }]),
    ends: 3,
    odd: ['bob'],
  },
  'names of attributes in capitals': {
    quirk: oddGroup({ ID: 'odd', DisplayName: 'Odd', MEMBERS: [{ Value: 'ann' }] }),
    ends: 3,
    odd: ['ann'],
  },
  'a name that is null': { quirk: oddGroup({ id: 'odd', displayName: null }), ends: 3, odd: null },
  'a name of blanks': { quirk: oddGroup({ id: 'odd', displayName: '  ' }), ends: 3, odd: null },
  'a name that would hurt a page or a terminal': {
    quirk: oddGroup({ id: 'odd', displayName: '=cmd|<script>\u0000\u001b[2J\u202e' }),
    ends: 3,
    odd: null,
  },
  'an id that is a number': { quirk: oddGroup({ id: 2, displayName: 'Odd' }), ends: 3 },
  'an id in braces': { quirk: oddGroup({ id: '{9F-1}', displayName: 'Odd' }), ends: 3 },
  'an id with a percent sign': { quirk: oddGroup({ id: 'a%2Fb', displayName: 'Odd' }), ends: 3 },
  'the id of another group': { quirk: oddGroup({ id: '1', displayName: 'Odd' }), ends: 2 },
  'an id that differs from another in its case': { quirk: byCase, ends: 2 },
  'the name of another group': { quirk: oddGroup({ id: 'odd', displayName: 'Group 1' }), ends: 3, odd: null },
  'a group that is not active, and listed': {
    quirk: oddGroup({ id: 'odd', displayName: 'Odd', active: false, meta: { deleted: true }, members: [] }),
    ends: 3,
    odd: [],
  },
  'nothing but an id': { quirk: oddGroup({ id: 'odd' }), ends: 3, odd: null },
  'a name that is a number': { quirk: oddGroup({ id: 'odd', displayName: 2024 }), ends: 3, odd: null },
  'a name that is a list': {
    quirk: oddGroup({ id: 'odd', displayName: [] }),
    ends: 3,
    odd: null,
    warning: 'wrong type',
  },
  'a group without an id': {
    quirk: oddGroup({ displayName: 'Odd' }),
    ends: 2,
    warning: 'the first: \\"Odd\\"',
  },
  'a group with an id of dots': {
    quirk: oddGroup({ id: '..', displayName: 'Odd' }),
    ends: 2,
    warning: 'without a usable id',
  },
  'a null among the groups': { quirk: oddGroup(null), ends: 2, warning: 'without a usable id' },
  'a list without a single usable group': {
    quirk: ofList(() => ({ body: { totalResults: 2, Resources: [{}, {}] } })),
    ends: 'directory_invalid_response',
  },
  'attributes named like parts of JavaScript': {
    quirk: ofList(() => ({
      send: (response) =>
        response.end(
          '{"totalResults":1,"Resources":[{"__proto__":{"id":"evil"},"id":"odd","constructor":{"prototype":{}}}]}',
        ),
    })),
    ends: 1,
    odd: null,
  },
}

const HTTP: Readonly<Record<string, Case>> = {
  'asks for a pause, in seconds': {
    groups: some,
    quirk: faultsFirst(2, status(429, { 'Retry-After': '1' })),
    ends: 3,
  },
  'asks for a pause in words': {
    groups: some,
    quirk: faultsFirst(1, status(429, { 'Retry-After': 'soon' })),
    ends: 3,
  },
  'asks for pauses for ever': {
    quirk: ofList(() => status(429, { 'Retry-After': '0' })),
    ends: 'directory_rate_limited',
  },
  'asks for a pause of a day': {
    quirk: ofList(() => status(429, { 'Retry-After': '86400' })),
    ends: 'directory_rate_limited',
  },
  'times out a few times': { groups: some, quirk: faultsFirst(3, status(408)), ends: 3 },
  'is away for a moment': { groups: some, quirk: faultsFirst(2, status(502)), ends: 3 },
  'hangs up a few times': { groups: some, quirk: faultsFirst(3, hangUp), ends: 3 },
  'asks for a pause until a time': {
    groups: some,
    quirk: faultsFirst(2, status(429, { 'Retry-After': new Date(Date.now() + 2000).toUTCString() })),
    ends: 3,
  },
  'fails in the middle for a while': {
    groups: hundreds,
    quirk: ofList((asked) => (startIndexOf(asked) > 100 && asked.before < 4 ? status(502) : undefined)),
    ends: 250,
  },
  'hangs up in the middle for a while': {
    groups: hundreds,
    quirk: ofList((asked) => (startIndexOf(asked) > 100 && asked.before < 4 ? halfAReply : undefined)),
    ends: 250,
  },
  'sends in small parts': {
    groups: some,
    quirk: ofList((asked) => inParts(listOf(some, asked.query))),
    ends: 3,
  },
  'sends an ETag and a large header': {
    groups: some,
    quirk: ofList((asked) => ({
      headers: { ETag: 'W/"1"', 'X-Large': 'x'.repeat(15_000) },
      body: listOf(some, asked.query),
    })),
    ends: 3,
  },
  'leads to the same path with a slash': {
    quirk: ofList(() => status(301, { Location: '/scim/v2/Groups/' })),
    ends: 'directory_invalid_response',
  },
  'repeats the token as its error': {
    quirk: ofList(({ authorization }) => ({
      status: 400,
      body: { detail: authorization, scimType: authorization?.slice(7) },
    })),
    ends: 'directory_invalid_response',
  },
  'repeats the token as a name': {
    quirk: ofList(({ authorization }) => ({
      body: { totalResults: 1, Resources: [{ id: 'a', displayName: authorization?.slice(7) }] },
    })),
    ends: 'directory_invalid_response',
  },
  'fails in the middle': {
    groups: hundreds,
    quirk: ofList((asked) => (startIndexOf(asked) > 100 ? status(500) : undefined)),
    ends: 'directory_unreachable',
  },
  'refuses the token in the middle': {
    groups: hundreds,
    quirk: ofList((asked) => (startIndexOf(asked) > 100 ? status(401) : undefined)),
    ends: 'directory_unauthorized',
  },
  'leads to a page to log in': {
    quirk: ofList(() => status(302, { Location: 'https://a.example/' })),
    ends: 'directory_invalid_response',
  },
  'gives a part of the list': { quirk: ofList(() => status(206)), ends: 'directory_invalid_response' },
  'sends hints ahead': {
    groups: some,
    quirk: ofList((asked) => ({
      send: (response) => {
        response.writeEarlyHints({ link: '</style.css>; rel=preload' })
        response.end(JSON.stringify(listOf(some, asked.query)))
      },
    })),
    ends: 3,
  },
  'knows no groups': { quirk: () => status(404), ends: 'directory_invalid_response' },
  'refuses the token for its configuration': { groups: some, quirk: config(status(401)), ends: 3 },
  'is asked too often for its configuration': { groups: some, quirk: config(status(429)), ends: 3 },
  'fails at its configuration': { groups: some, quirk: config(status(500)), ends: 3 },
  'hangs up at its configuration': { groups: some, quirk: config(hangUp), ends: 3 },
  'redirects its configuration': { groups: some, quirk: config(status(302)), ends: 3 },
}

const BY_GROUP: Readonly<Record<string, Case>> = {
  'fails at one group': {
    groups: manyGroups(5),
    quirk: ({ path }) => (path === '/Groups/3' ? status(500) : undefined),
    members: 'per_group',
    ends: 5,
    warning: 'could not be read',
  },
  'forbids one group': {
    groups: manyGroups(5),
    quirk: ({ path }) => (path === '/Groups/3' ? status(403) : undefined),
    members: 'per_group',
    ends: 5,
    warning: 'could not be read',
  },
  'forbids more than a fifth of the groups': {
    groups: manyGroups(30),
    quirk: ({ path }) => (/^\/Groups\/[1-7]$/.test(path) ? status(403) : undefined),
    members: 'per_group',
    ends: 'directory_unauthorized',
  },
  'gives users and groups as the members of each group': {
    groups: manyGroups(5),
    quirk: ({ path }) =>
      path.startsWith('/Groups/')
        ? {
            body: {
              id: path.slice(8),
              displayName: 'x',
              members: [{ value: 'ann' }, { value: '2', type: 'Group' }],
            },
          }
        : undefined,
    members: 'per_group',
    ends: 5,
  },
  'gives nonsense for one group': {
    groups: manyGroups(5),
    quirk: ({ path }) => (path === '/Groups/3' ? { body: { id: '3', members: 'x' } } : undefined),
    members: 'per_group',
    ends: 5,
    warning: 'wrong type',
  },
  'gives a list for each group': {
    groups: manyGroups(5),
    quirk: ({ path }) =>
      path.startsWith('/Groups/') ? { body: { totalResults: 1, Resources: [{ id: '1' }] } } : undefined,
    members: 'per_group',
    ends: 'directory_invalid_response',
  },
}

describe.each(Object.entries({ ...PAGING, ...SHAPES, ...HTTP, ...BY_GROUP }))(
  'a directory with this: %s',
  (_name, { groups = [], quirk, members = 'inline', ends, odd, warning }) => {
    it(`ends as ${ends}`, async () => {
      await using directory = await startDirectory(groups, quirk === undefined ? {} : { quirk })
      const account = await connect(directory.url, members)
      const job = await account.sync()
      const expected = typeof ends === 'number' ? { synced_groups: ends } : { error_message: FAILURES[ends] }
      expect(job).toMatchObject({ deleted_groups: typeof ends === 'number' ? 0 : null, ...expected })
      const { data, total_count } = await account.groups()
      expect(total_count).toBe(typeof ends === 'number' ? ends : 0)
      const group = data.find(({ external_id }) => external_id === 'odd')
      if (odd !== undefined) {
        const found = await account.members(group?.id ?? '')
        expect(found.total_count === null ? null : found.data.map(({ id }) => id)).toEqual(odd)
      }
      if (warning === undefined) expect(warningsOf(job.id)).toBe('[]')
      else expect(warningsOf(job.id)).toContain(warning)
    })
  },
)

describe('a group that leaves the list', () => {
  it.each<[string, Reply | 'there', string?]>([
    ['404', status(404)],
    ['410', status(410)],
    ['400', refused],
    ['401', status(401)],
    ['403', status(403)],
    ['405', status(405)],
    ['408', status(408)],
    ['429', status(429)],
    ['500', status(500)],
    ['501', status(501)],
    ['503', status(503)],
    ['302', status(302)],
    ['no answer', hangUp],
    ['a page for people', { send: (response) => response.end('<html></html>') }],
    ['an empty object', { body: {} }],
    ['null', { body: null }],
    ['the group as it was', 'there', 'readable by id, but in no list'],
  ])('is deleted where its own request is answered with %s', async (_name, reply, warning) => {
    const all = manyGroups(10)
    let listed: readonly DirectoryGroup[] = all
    await using directory = await startDirectory(all, {
      quirk: (asked) => {
        if (asked.path === '/Groups') return usualReply(listed, asked)
        return asked.path === '/Groups/10' && reply !== 'there' ? reply : undefined
      },
    })
    const account = await connect(directory.url, 'inline')
    await account.sync()
    listed = all.slice(0, 9)
    const job = await account.sync()
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 9, deleted_groups: 1 })
    if (warning !== undefined) expect(warningsOf(job.id)).toContain(warning)
  })

  it('stays where the list has a group without a usable id', async () => {
    const all = manyGroups(3)
    const rows: unknown[] = [...all]
    await using directory = await startDirectory(all, {
      quirk: ofList(() => ({ body: { totalResults: rows.length, Resources: rows } })),
    })
    const account = await connect(directory.url, 'inline')
    await account.sync()
    rows.splice(0, 1, { displayName: 'Nameless' })
    expect(await account.sync()).toMatchObject({ status: 'succeeded', synced_groups: 3, deleted_groups: 0 })
  })
})

describe('members that cannot be read', () => {
  it('stay as they are stored', async () => {
    const groups = manyGroups(5)
    let forbidden = false
    await using directory = await startDirectory(groups, {
      quirk: ({ path }) => (forbidden && path === '/Groups/3' ? status(403) : undefined),
    })
    const account = await connect(directory.url, 'per_group')
    await account.sync()
    const before = await account.all()
    forbidden = true
    groups.splice(2, 1, { id: '3', displayName: 'Group 3', members: [] })
    expect(await account.sync()).toMatchObject({ status: 'succeeded', synced_groups: 5 })
    expect(await account.all()).toEqual(before)
  })
})
