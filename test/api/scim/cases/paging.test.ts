/** CONTRACT 5: lists of groups in any paging, mostly known from reports of users of directories. */
import {
  describeDirectories,
  hangUp,
  refused,
  startIndexOf,
  status,
  useAccounts,
} from '../../../support/scim/directory-case.ts'
import {
  listOf,
  manyGroups,
  type Asked,
  type DirectoryGroup,
  type Quirk,
  type Reply,
  ofList,
} from '../../../support/scim/faulty-directory.ts'

const countOf = ({ query }: Asked, most: number) => Math.min(Number(query.get('count') ?? most), most)

/** The requested page, with at most `most` groups, and further attributes. */
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

/** A directory with cursors, announced or not; `only`: rejects requests without one. */
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

/** Without sortBy each page begins elsewhere, so that pages overlap and miss groups. */
const unsorted =
  (sort: boolean): Quirk =>
  (asked) => {
    const { path, query } = asked
    if (path === '/ServiceProviderConfig') return { body: { sort: { supported: sort } } }
    if (path !== '/Groups' || query.get('sortBy') === 'id') return undefined
    const turn = 35 * asked.before
    return page([...hundreds.slice(turn), ...hundreds.slice(0, turn)], asked)
  }

const some = manyGroups(3)
const hundreds = manyGroups(250)

describeDirectories(useAccounts(), {
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
    warning: 'may be capped',
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
    warning: 'may be capped',
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
    warning: 'may be capped',
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
  'has no stable order, but sorts by id': { groups: hundreds, quirk: unsorted(true), ends: 250 },
  'has no stable order at all': { groups: hundreds, quirk: unsorted(false), ends: 'directory_incomplete' },
  'fails with 500 for any count': {
    groups: some,
    quirk: ofList((asked) => (asked.query.has('count') ? status(500) : page(some, asked))),
    ends: 3,
    warning: 'may be capped',
  },
  'times out at a gateway for large pages': {
    groups: hundreds,
    quirk: ofList((asked) => (countOf(asked, 1000) > 25 ? status(504) : undefined)),
    ends: 250,
  },
  'writes resources in lower case, and counts from 0': {
    quirk: ofList((asked) => {
      const { Resources: resources } = listOf(hundreds, asked.query, { maxPage: 10 })
      return { body: { totalResults: 250, startIndex: 0, resources } }
    }),
    ends: 250,
  },
  'refuses a large count with a cursor': { quirk: byCursor(hundreds, { only: true, most: 10 }), ends: 250 },
})
