/** CONTRACT 5: lists of groups in any paging, mostly known from reports of users of directories. */
import type { Failure } from '../../../../api/scim/failures.ts'
import {
  describeDirectories,
  hangUp,
  refused,
  startIndexOf,
  status,
  useAccounts,
  type DirectoryCase,
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

const twoPages = hundreds.slice(0, 200)

/** A list of groups with these replies, and how the sync ends. */
const list = (reply: Quirk, ends: number | Failure, warning?: string): DirectoryCase => ({
  quirk: ofList(reply),
  ends,
  ...(warning !== undefined && { warning }),
})
/** A directory whose groups are read in spite of this. */
const reads = (quirk: Quirk, groups: DirectoryGroup[]): DirectoryCase => ({
  groups,
  quirk,
  ends: groups.length,
})

describeDirectories(useAccounts(), {
  'gives its first page whatever is requested, and counts it alone': list(
    () => ({ body: listOf(hundreds.slice(0, 100), new URLSearchParams({ count: '100' })) }),
    'directory_incomplete',
  ),
  'gives its first page whatever is requested, and counts all': list(
    () => ({ body: { ...listOf(hundreds, new URLSearchParams({ count: '100' })) } }),
    'directory_incomplete',
  ),
  'gives all groups whatever is requested': list(
    () => ({ body: listOf(hundreds, new URLSearchParams({ count: '1000' })) }),
    250,
    'may be capped',
  ),
  'has as many groups as a page, and answers with the first page past the end': {
    groups: hundreds.slice(0, 100),
    quirk: ofList((asked) =>
      startIndexOf(asked) > 100
        ? page(hundreds.slice(0, 100), { ...asked, query: new URLSearchParams() })
        : undefined,
    ),
    ends: 100,
  },
  'counts the page for the total': list((asked) => {
    const whole = listOf(
      hundreds,
      new URLSearchParams({ startIndex: String(startIndexOf(asked)), count: String(countOf(asked, 100)) }),
    )
    return { body: { ...whole, totalResults: whole.Resources.length } }
  }, 250),
  'gives no total': list((asked) => page(hundreds, asked, 100, { totalResults: undefined }), 250),
  'gives its total as text': list((asked) => page(hundreds, asked, 100, { totalResults: '250' }), 250),
  'gives a total below nothing': list((asked) => page(hundreds, asked, 100, { totalResults: -1 }), 250),
  'gives smaller pages than requested': list((asked) => page(hundreds, asked, 20), 250),
  'says its largest page, and gives nothing for larger ones': {
    quirk: (asked) => {
      if (asked.path === '/ServiceProviderConfig')
        return { body: { filter: { maxResults: 40 }, pagination: { maxPageSize: 30 } } }
      if (asked.path !== '/Groups') return undefined
      return countOf(asked, 1000) > 30 ? { body: { totalResults: 0 } } : page(hundreds, asked)
    },
    ends: 250,
  },
  'refuses a count above 50': list(
    (asked) => (Number(asked.query.get('count') ?? 0) > 50 ? refused : page(hundreds, asked, 50)),
    250,
  ),
  'refuses any count': list((asked) => (asked.query.has('count') ? refused : page(hundreds, asked, 20)), 250),
  'refuses paging with 501': {
    groups: some,
    quirk: ofList((asked) =>
      asked.query.has('startIndex') || asked.query.has('cursor') ? status(501) : page(some, asked),
    ),
    ends: 3,
    warning: 'may be capped',
  },
  'answers 404 past the end': reads(pastEnd(hundreds, status(404)), hundreds),
  'answers 400 past the end': reads(pastEnd(hundreds, refused), hundreds),
  'answers 500 past the end, which is the end of a full page': reads(
    pastEnd(twoPages, status(500)),
    twoPages,
  ),
  'hangs up past the end': reads(pastEnd(twoPages, hangUp), twoPages),
  'answers 429 past the end': reads(pastEnd(twoPages, status(429)), twoPages),
  'gives the last group again past the end': list(
    (asked) =>
      page(hundreds, {
        ...asked,
        query: new URLSearchParams({ startIndex: String(Math.min(startIndexOf(asked), 250)), count: '20' }),
      }),
    250,
  ),
  'gives an empty page in the middle': list(
    (asked) => page(hundreds, asked, 100, startIndexOf(asked) === 101 ? { Resources: [] } : {}),
    'directory_incomplete',
  ),
  'repeats rows, and counts them': list(
    (asked) => page([...hundreds.slice(0, 100), ...hundreds.slice(90)], asked),
    250,
  ),
  'repeats a group on one page': list((asked) => page([...some, ...some.slice(0, 1)], asked), 3),
  'gives a single group without brackets': list(() => ({ body: { totalResults: 1, Resources: some[0] } }), 1),
  'counts its groups from 0, so that none is the first': list(
    (asked) => ({
      body: { totalResults: 250, Resources: hundreds.slice(startIndexOf(asked), startIndexOf(asked) + 20) },
    }),
    'directory_incomplete',
  ),
  'gives an empty list by its total alone': list(() => ({ body: { totalResults: 0 } }), 0),
  'gives an empty list as null': list(() => ({ body: { totalResults: 0, Resources: null } }), 0),
  'gives a bare array': list(() => ({ body: some }), 'directory_invalid_response'),
  'gives an error with status 200': list(
    () => ({ body: { status: '404', detail: 'none' } }),
    'directory_invalid_response',
  ),
  'gives pages with too many bytes': list((asked) => {
    const groups = hundreds.map((group) => ({ ...group, note: 'x'.repeat(800_000) }))
    return page(groups, asked)
  }, 250),
  'pages by cursor': { quirk: byCursor(hundreds), ends: 250 },
  'pages by cursor alone, without a total': {
    quirk: byCursor(hundreds, { only: true, total: false }),
    ends: 250,
  },
  'pages by cursor when that is requested, and does not say so': {
    quirk: byCursor(hundreds, { says: false, most: 100 }),
    ends: 250,
  },
  'pages by cursor alone in truth, and says a smaller page than it gives': {
    quirk: (asked) => {
      if (asked.path === '/ServiceProviderConfig') return { body: { filter: { maxResults: 50 } } }
      if (asked.query.has('cursor')) return byCursor(hundreds, { most: 100, total: false })(asked)
      return ofList(() => ({ body: listOf(hundreds.slice(0, 100), new URLSearchParams({ count: '100' })) }))(
        asked,
      )
    },
    ends: 250,
  },
  'ends its cursors with an empty one': list(
    () => ({ body: { Resources: some, nextCursor: '' } }),
    3,
    'may be capped',
  ),
  'lets a cursor expire': {
    quirk: (asked) =>
      asked.query.get('cursor') === '50' && asked.before < 3
        ? { status: 400, body: { scimType: 'expiredCursor' } }
        : byCursor(hundreds)(asked),
    ends: 250,
  },
  'leads its cursors in a circle': list(
    () => ({ body: { Resources: some, nextCursor: 'again' } }),
    'directory_incomplete',
  ),
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
  'writes resources in lower case, and counts from 0': list((asked) => {
    const { Resources: resources } = listOf(hundreds, asked.query, { maxPage: 10 })
    return { body: { totalResults: 250, startIndex: 0, resources } }
  }, 250),
  'refuses a large count with a cursor': { quirk: byCursor(hundreds, { only: true, most: 10 }), ends: 250 },
})
