/** CONTRACT 5: lists of groups in any paging, mostly known from reports of users of directories. */
import type { Failure } from '../../../../api/scim/failures.ts'
import {
  hangUp,
  listOf,
  manyGroups,
  ofList,
  refused,
  startIndexOf,
  status,
  type Asked,
  type DirectoryGroup,
  type Quirk,
  type Reply,
} from '../../../support/scim/faulty-directory.ts'
import { describeDirectories, useAccounts, type DirectoryCase } from '../../../support/scim/sync.ts'

const some = manyGroups(3)
const hundreds = manyGroups(250)
const hundred = hundreds.slice(0, 100)
const twoPages = hundreds.slice(0, 200)

type Query = Pick<Asked, 'query'>
const NO_QUERY: Query = { query: new URLSearchParams() }
const countOf = ({ query }: Query, most: number) => Math.min(Number(query.get('count') ?? most), most)

/** The requested page, with at most `most` groups, and further attributes. */
function page(groups: readonly DirectoryGroup[], asked: Query, most = 100, more: object = {}): Reply {
  const query = { startIndex: asked.query.get('startIndex') ?? '1', count: String(countOf(asked, most)) }
  return { body: { ...listOf(groups, new URLSearchParams(query)), ...more } }
}
/** The page from another index. */
const pageFrom = (startIndex: number, count: number): Reply =>
  page(hundreds, { query: new URLSearchParams({ startIndex: String(startIndex), count: String(count) }) })

/** Requests past the end are answered by this. */
const pastEnd = (groups: DirectoryGroup[], reply: Reply): DirectoryCase =>
  list((asked) => (startIndexOf(asked) > groups.length ? reply : page(groups, asked)), groups.length)

const configured =
  (config: object, quirk: Quirk): Quirk =>
  (asked) =>
    asked.path === '/ServiceProviderConfig' ? { body: config } : quirk(asked)

/** The first page, whatever is requested. */
const firstPage: Quirk = () => page(hundred, NO_QUERY)

/** A directory with cursors, announced or not, which answers requests without one like this. */
function byCursor({ without = firstPage, says = true, total = true, most = 50, prefix = '' } = {}): Quirk {
  const cursors = ofList((asked) => {
    const cursor = asked.query.get('cursor')
    if (cursor === null) return without(asked)
    if (countOf(asked, 1000) > most) return { status: 400, body: { scimType: 'invalidCount' } }
    const first = Number(cursor.slice(prefix.length))
    const next = first + countOf(asked, most)
    return {
      body: {
        Resources: hundreds.slice(first, next),
        ...(total && { totalResults: hundreds.length }),
        ...(next < hundreds.length && { nextCursor: prefix + String(next) }),
      },
    }
  })
  return configured({ pagination: { cursor: says } }, cursors)
}

/** Each page begins elsewhere, so that pages overlap and miss groups, unless the directory sorts. */
const unsorted = (sorts: boolean, { step = 35, more = {} } = {}): Quirk =>
  ofList((asked) => {
    const turn = sorts && asked.query.get('sortBy') === 'id' ? 0 : (step * asked.before) % 250
    return page([...hundreds.slice(turn), ...hundreds.slice(0, turn)], asked, 100, more)
  })

/** A list of groups with these replies, and how the sync ends. */
const list = (reply: Quirk, ends: number | Failure, warning?: string): DirectoryCase => ({
  quirk: ofList(reply),
  ends,
  ...(warning !== undefined && { warning }),
})
const refuses = (isRefused: (asked: Asked) => boolean, reply: Reply, ends = 250, warning?: string) =>
  list((asked) => (isRefused(asked) ? reply : page(ends === 3 ? some : hundreds, asked, 20)), ends, warning)

describeDirectories(useAccounts(), {
  'gives its first page whatever is requested, and counts it alone': list(
    () => page(hundred, NO_QUERY),
    'directory_incomplete',
  ),
  'gives its first page whatever is requested, and counts all': list(
    () => page(hundreds, NO_QUERY),
    'directory_incomplete',
  ),
  'gives all groups whatever is requested': list(() => page(hundreds, NO_QUERY, 1000), 250, 'may be capped'),
  'has as many groups as a page, and answers with the first page past the end': pastEnd(
    hundred,
    page(hundred, NO_QUERY),
  ),
  'counts the page for the total': list(
    (asked) => page(hundreds, asked, 100, { totalResults: Math.min(100, 251 - startIndexOf(asked)) }),
    250,
  ),
  // WSO2 7320 and 10898: the total is the number of rows, which fewer than requested may be.
  'counts the page for the total, and gives fewer than requested': list(
    (asked) => page(hundreds, asked, 40, { totalResults: Math.min(40, 251 - startIndexOf(asked)) }),
    250,
  ),
  'gives no total': list((asked) => page(hundreds, asked, 100, { totalResults: undefined }), 250),
  'gives its total as text': list((asked) => page(hundreds, asked, 100, { totalResults: '250' }), 250),
  'gives a total below nothing': list((asked) => page(hundreds, asked, 100, { totalResults: -1 }), 250),
  'gives smaller pages than requested': list((asked) => page(hundreds, asked, 20), 250),
  'gives nothing for a count above 50': refuses(
    (asked) => countOf(asked, 1000) > 50,
    page([], NO_QUERY, 20, { totalResults: 250 }),
  ),
  'refuses a count above 50': refuses(
    (asked) => countOf(asked, 1000) > 50 && asked.query.has('count'),
    refused,
  ),
  'refuses any count': refuses(({ query }) => query.has('count'), refused),
  'refuses paging with 501': refuses(
    ({ query }) => query.has('startIndex') || query.has('cursor'),
    status(501),
    3,
    'may be capped',
  ),
  'fails with 500 for any count': refuses(({ query }) => query.has('count'), status(500), 3, 'may be capped'),
  'times out at a gateway for large pages': refuses((asked) => countOf(asked, 1000) > 25, status(504)),
  'answers 404 past the end': pastEnd(hundreds, status(404)),
  'answers 400 past the end': pastEnd(hundreds, refused),
  'answers 500 past the end, which is the end of a full page': pastEnd(twoPages, status(500)),
  'answers 500 past the end of its only page': pastEnd(some, status(500)),
  'hangs up past the end': pastEnd(twoPages, hangUp),
  'answers 429 past the end': pastEnd(twoPages, status(429)),
  'gives the last group again past the end': list(
    (asked) => pageFrom(Math.min(startIndexOf(asked), 250), 20),
    250,
  ),
  'gives an empty page in the middle': list(
    (asked) => page(hundreds, asked, 100, startIndexOf(asked) === 101 ? { Resources: [] } : {}),
    'directory_incomplete',
  ),
  'repeats rows, and counts them': list((asked) => page([...hundred, ...hundreds.slice(90)], asked), 250),
  'repeats a group on one page': list((asked) => page([...some, ...some.slice(1, 2)], asked), 3),
  'gives a single group without brackets': list(() => ({ body: { totalResults: 1, Resources: some[0] } }), 1),
  'counts its groups from 0, so that none is the first': list(
    (asked) => pageFrom(startIndexOf(asked) + 1, 20),
    'directory_incomplete',
  ),
  'gives an empty list by its total alone': list(() => ({ body: { totalResults: 0 } }), 0),
  'gives an empty list as null': list(() => ({ body: { totalResults: 0, Resources: null } }), 0),
  'gives a bare array': list(() => ({ body: some }), 'directory_invalid_response'),
  'gives an error with status 200': list(() => ({ body: { status: '404' } }), 'directory_invalid_response'),
  'pages by cursor': { quirk: byCursor(), ends: 250 },
  'pages by cursor alone, without a total': {
    quirk: byCursor({ without: () => refused, total: false }),
    ends: 250,
  },
  'pages by cursor when that is requested, and does not say so': {
    quirk: byCursor({ says: false, most: 100 }),
    ends: 250,
  },
  'pages by cursor alone in truth, and says a smaller page than it gives': {
    quirk: configured({ filter: { maxResults: 50 } }, byCursor({ most: 100, total: false })),
    ends: 250,
  },
  'pages by cursor, of which it says nothing, and otherwise counts more than it gives': {
    quirk: byCursor({ says: false, without: () => page(hundreds, NO_QUERY) }),
    ends: 250,
  },
  'pages by cursor alone, and does not say so': {
    quirk: byCursor({ says: false, without: () => refused }),
    ends: 250,
  },
  'announces cursors, and fails with 500 after its first page by index': {
    quirk: byCursor({
      without: (asked) => (startIndexOf(asked) > 100 ? status(500) : page(hundreds, asked)),
    }),
    ends: 250,
  },
  'announces cursors, and has 200 groups by index': {
    quirk: byCursor({ without: (asked) => page(twoPages, asked) }),
    ends: 250,
  },
  'has cursors of 3,000 characters': {
    quirk: byCursor({ without: () => refused, prefix: 'x'.repeat(3000) }),
    ends: 250,
  },
  'announces cursors, and has an index alone': {
    quirk: configured(
      { pagination: { cursor: true } },
      ofList((asked) => page(hundreds, asked, 50)),
    ),
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
        : byCursor()(asked),
    ends: 250,
  },
  'leads its cursors in a circle': list(
    () => ({ body: { Resources: some, nextCursor: 'again' } }),
    'directory_incomplete',
  ),
  'leads its cursors in a circle of two pages': list(
    ({ before }) => ({ body: { Resources: some, nextCursor: `cursor-${before % 2}` } }),
    'directory_incomplete',
  ),
  'gives the same cursor with empty pages for ever': list(
    ({ before }) => ({ body: { Resources: before === 0 ? some : [], nextCursor: 'again' } }),
    'directory_incomplete',
  ),
  'has a page of groups without ids and one of known groups, by cursor': list(
    ({ query }) => {
      const turn = Number(query.get('cursor') ?? 0)
      const Resources = [some.slice(0, 2), [{ displayName: 'Odd' }], some.slice(0, 1), some.slice(2)][turn]
      return { body: { Resources, ...(turn < 3 && { nextCursor: String(turn + 1) }) } }
    },
    3,
    'the first: "Odd"',
  ),
  'refuses a large count with a cursor': { quirk: byCursor({ without: () => refused, most: 10 }), ends: 250 },
  'has no stable order, but sorts by id': { quirk: unsorted(true), ends: 250 },
  'has no stable order and no total, but sorts by id': {
    quirk: unsorted(true, { step: 215, more: { totalResults: undefined } }),
    ends: 250,
  },
  'has no stable order, and gives nothing when it is to sort': list(
    (asked) => (asked.query.has('sortBy') ? { body: { totalResults: 0 } } : unsorted(false)(asked)),
    'directory_incomplete',
  ),
  'refuses to sort, and a group is deleted meanwhile': list((asked) => {
    if (asked.query.has('sortBy')) return refused
    return page(asked.before === 0 ? [...hundreds.slice(0, 1), ...hundreds] : hundreds, asked)
  }, 250),
  'has no stable order at all': { quirk: unsorted(false), ends: 'directory_incomplete' },
  'writes resources in lower case, and counts from 0': list((asked) => {
    const { Resources: resources } = listOf(hundreds, asked.query, 10)
    return { body: { totalResults: 250, startIndex: 0, resources } }
  }, 250),
})
