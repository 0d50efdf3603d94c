/** CONTRACT 5: lists of groups in any paging, mostly known from reports of users of directories. */
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
import { describeDirectories, list, useAccounts } from '../../../support/scim/sync.ts'

const some = manyGroups(3)
const hundreds = manyGroups(250)
const hundred = hundreds.slice(0, 100)
const twoPages = hundreds.slice(0, 200)

type Query = Pick<Asked, 'query'>
const countOf = ({ query }: Query, most: number) => Math.min(Number(query.get('count') ?? most), most)

/** The requested page, with at most `most` groups, and further attributes. */
function page(groups: readonly DirectoryGroup[], asked: Query, most = 100, more: object = {}): Reply {
  const query = { startIndex: asked.query.get('startIndex') ?? '1', count: String(countOf(asked, most)) }
  return { body: { ...listOf(groups, new URLSearchParams(query)), ...more } }
}
/** The page from another index, of 20 groups. */
const pageFrom = (startIndex: number): Reply =>
  page(hundreds, { query: new URLSearchParams({ startIndex: String(startIndex), count: '20' }) })
/** The first page, whatever is requested. */
const firstOf = (groups: readonly DirectoryGroup[], most = 100, more: object = {}): Reply =>
  page(groups, { query: new URLSearchParams() }, most, more)
const firstPage: Quirk = () => firstOf(hundred)
const rows = (Resources: unknown, nextCursor: string): Reply => ({ body: { Resources, nextCursor } })

const hasCount = ({ query }: Asked) => query.has('count')
const isPaged = ({ query }: Asked) => query.has('startIndex') || query.has('cursor')
const isAbove = (most: number) => (asked: Asked) => countOf(asked, 1000) > most

const all = (reply: Quirk) => list(reply, 250)
const incomplete = (reply: Quirk) => list(reply, 'directory_incomplete')
const CAPPED = 'may be capped'

/** Pages of at most 20, but for some requests. */
const refuses = (isRefused: (asked: Asked) => boolean, reply: Reply, ends = 250, warning?: string) =>
  list((asked) => (isRefused(asked) ? reply : page(ends === 3 ? some : hundreds, asked, 20)), ends, warning)
/** Requests past the end are answered by this. */
const pastEnd = (groups: DirectoryGroup[], reply: Reply) =>
  list((asked) => (startIndexOf(asked) > groups.length ? reply : page(groups, asked)), groups.length)
/** The total is the number of rows of the page and after it. */
const counting = (most: number) =>
  all((asked) => page(hundreds, asked, most, { totalResults: Math.min(most, 251 - startIndexOf(asked)) }))

const configured =
  (config: object, quirk: Quirk): Quirk =>
  (asked) =>
    asked.path === '/ServiceProviderConfig' ? { body: config } : quirk(asked)

/** A directory with cursors, announced or not, which answers requests without one like this. */
function cursors({ without = firstPage, says = true, total = true, most = 50, prefix = '' } = {}): Quirk {
  const answer = ofList((asked) => {
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
  return configured({ pagination: { cursor: says } }, answer)
}
const byCursor = (options?: Parameters<typeof cursors>[0]) => ({ quirk: cursors(options), ends: 250 })
const refusing = () => refused

/** Each page begins elsewhere, so that pages overlap and miss groups, unless the directory sorts. */
const unsorted =
  (sorts: boolean, { step = 35, more = {} } = {}): Quirk =>
  (asked) => {
    const turn = sorts && asked.query.get('sortBy') === 'id' ? 0 : (step * asked.before) % 250
    return page([...hundreds.slice(turn), ...hundreds.slice(0, turn)], asked, 100, more)
  }

describeDirectories(useAccounts(), {
  'gives its first page whatever is requested, and counts it alone': incomplete(firstPage),
  'gives its first page whatever is requested, and counts all': incomplete(() => firstOf(hundreds)),
  'gives all groups whatever is requested': list(() => firstOf(hundreds, 1000), 250, CAPPED),
  'has as many groups as a page, and repeats the first page past the end': pastEnd(hundred, firstOf(hundred)),
  'counts the page for the total': counting(100),
  // WSO2 7320 and 10898: the total is the number of rows, which fewer than requested may be.
  'counts the page for the total, and gives fewer than requested': counting(40),
  'gives no total': all((asked) => page(hundreds, asked, 100, { totalResults: undefined })),
  'gives its total as text': all((asked) => page(hundreds, asked, 100, { totalResults: '250' })),
  'gives a total below nothing': all((asked) => page(hundreds, asked, 100, { totalResults: -1 })),
  'gives smaller pages than requested': all((asked) => page(hundreds, asked, 20)),
  'gives nothing for a count above 50': refuses(isAbove(50), firstOf([], 20, { totalResults: 250 })),
  'refuses a count above 50': refuses((asked) => hasCount(asked) && isAbove(50)(asked), refused),
  'refuses any count': refuses(hasCount, refused),
  'refuses paging with 501': refuses(isPaged, status(501), 3, CAPPED),
  'fails with 500 for any count': refuses(hasCount, status(500), 3, CAPPED),
  'times out at a gateway for large pages': refuses(isAbove(25), status(504)),
  'answers 404 past the end': pastEnd(hundreds, status(404)),
  'answers 400 past the end': pastEnd(hundreds, refused),
  'answers 500 past the end, which is the end of a full page': pastEnd(twoPages, status(500)),
  'answers 500 past the end of its only page': pastEnd(some, status(500)),
  'hangs up past the end': pastEnd(twoPages, hangUp),
  'answers 429 past the end': pastEnd(twoPages, status(429)),
  'gives the last group again past the end': all((asked) => pageFrom(Math.min(startIndexOf(asked), 250))),
  'gives an empty page in the middle': incomplete((asked) =>
    page(hundreds, asked, 100, startIndexOf(asked) === 101 ? { Resources: [] } : {}),
  ),
  'repeats rows, and counts them': all((asked) => page([...hundred, ...hundreds.slice(90)], asked)),
  'repeats a group on one page': list((asked) => page([...some, ...some.slice(1, 2)], asked), 3),
  'gives a single group without brackets': list(() => ({ body: { totalResults: 1, Resources: some[0] } }), 1),
  'counts its groups from 0, so that none is the first': incomplete((asked) =>
    pageFrom(startIndexOf(asked) + 1),
  ),
  'gives an empty list by its total alone': list(() => ({ body: { totalResults: 0 } }), 0),
  'gives an empty list as null': list(() => ({ body: { totalResults: 0, Resources: null } }), 0),
  'gives a bare array': list(() => ({ body: some }), 'directory_invalid_response'),
  'gives an error with status 200': list(() => ({ body: { status: '404' } }), 'directory_invalid_response'),
  'pages by cursor': byCursor(),
  'pages by cursor alone, without a total': byCursor({ without: refusing, total: false }),
  'pages by cursor when that is requested, and does not say so': byCursor({ says: false, most: 100 }),
  'pages by cursor alone in truth, and says a smaller page than it gives': {
    quirk: configured({ filter: { maxResults: 50 } }, cursors({ most: 100, total: false })),
    ends: 250,
  },
  'pages by cursor, does not say so, and otherwise counts more than it gives': byCursor({
    says: false,
    without: () => firstOf(hundreds),
  }),
  'pages by cursor alone, and does not say so': byCursor({ says: false, without: refusing }),
  'announces cursors, and fails with 500 after its first page by index': byCursor({
    without: (asked) => (startIndexOf(asked) > 100 ? status(500) : page(hundreds, asked)),
  }),
  'announces cursors, and has 200 groups by index': byCursor({ without: (asked) => page(twoPages, asked) }),
  'has cursors of 3,000 characters': byCursor({ without: refusing, prefix: 'x'.repeat(3000) }),
  'announces cursors, and has an index alone': {
    quirk: configured(
      { pagination: { cursor: true } },
      ofList((asked) => page(hundreds, asked, 50)),
    ),
    ends: 250,
  },
  'ends its cursors with an empty one': list(() => rows(some, ''), 3, CAPPED),
  'lets a cursor expire': {
    quirk: (asked) =>
      asked.query.get('cursor') === '50' && asked.before < 3
        ? { status: 400, body: { scimType: 'expiredCursor' } }
        : cursors()(asked),
    ends: 250,
  },
  'leads its cursors in a circle': incomplete(() => rows(some, 'again')),
  'leads its cursors in a circle of two pages': incomplete(({ before }) => rows(some, `to-${before % 2}`)),
  'gives the same cursor with empty pages for ever': incomplete(({ before }) =>
    rows(before === 0 ? some : [], 'again'),
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
  'refuses a large count with a cursor': byCursor({ without: refusing, most: 10 }),
  'has no stable order, but sorts by id': all(unsorted(true)),
  'has no stable order and no total, but sorts by id': all(
    unsorted(true, { step: 215, more: { totalResults: undefined } }),
  ),
  'has no stable order, and gives nothing when it is to sort': incomplete((asked) =>
    asked.query.has('sortBy') ? { body: { totalResults: 0 } } : unsorted(false)(asked),
  ),
  'refuses to sort, and a group is deleted meanwhile': all((asked) => {
    if (asked.query.has('sortBy')) return refused
    return page(asked.before === 0 ? [...hundreds.slice(0, 1), ...hundreds] : hundreds, asked)
  }),
  'has no stable order at all': incomplete(unsorted(false)),
  'writes resources in lower case, and counts from 0': all((asked) => {
    const { Resources: resources } = listOf(hundreds, asked.query, 10)
    return { body: { totalResults: 250, startIndex: 0, resources } }
  }),
})
