/** CONTRACT 5: directories with odd HTTP, that never answer, or that send too much: these are cut off. */
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import {
  groupsNamed,
  hangUp,
  listOf,
  manyGroups,
  ofList,
  startDirectory,
  startIndexOf,
  status,
  type Quirk,
  type Reply,
} from '../../../support/scim/faulty-directory.ts'
import { describeDirectories, list, useAccounts, type DirectoryCase } from '../../../support/scim/sync.ts'

const some = manyGroups(3)
const hundreds = manyGroups(250)

/** A directory whose groups are read in spite of this. */
const reads = (quirk: Quirk, groups = some): DirectoryCase => ({ groups, quirk, ends: groups.length })
const invalid = (reply: Quirk | Reply) => list(reply, 'directory_invalid_response')
const tooLarge = (reply: Quirk | Reply) => list(reply, 'directory_too_large')
/** Answers the first requests for the list. */
const first = (faults: number, reply: Reply): Quirk =>
  ofList(({ before }) => (before < faults ? reply : undefined))
/** A fault of the second page, at the first `most` requests. */
const inTheMiddle = (reply: Reply, most = Infinity): Quirk =>
  ofList((asked) => (startIndexOf(asked) > 100 && asked.before < most ? reply : undefined))
const retryAfter = (value: string) => status(429, { 'Retry-After': value })
/** As GitHub does, which makes a 403 no refusal of the token. */
const forbidden = (value: string) => status(403, { 'Retry-After': value })
const soon = Date.now() + 2000
const halfAReply: Reply = {
  send: (response) => {
    response.writeHead(200, { 'Content-Length': '100000' }).write('{"Resou', () => response.destroy())
  },
}
const configs = [status(401), status(429), status(500), status(302), hangUp].map((reply, index) => [
  `fails at its configuration (${index})`,
  reads(({ path }) => (path === '/ServiceProviderConfig' ? reply : undefined)),
])

describeDirectories(useAccounts(), {
  ...Object.fromEntries(configs),
  'answers 403, and asks for no pause that can be read': list(forbidden('soon 5'), 'directory_unauthorized'),
  'asks for a pause in words': reads(first(1, retryAfter('soon'))),
  'is overloaded and asks for fifteen pauses': reads(first(15, status(503, { 'Retry-After': '1' }))),
  'asks for a pause in seconds': reads(first(2, forbidden('1'))),
  'asks for a pause until a time': reads(first(2, forbidden(new Date(soon).toUTCString()))),
  'asks for a pause until a time that is far away': list(
    first(1, forbidden('Wed, 21 Oct 2099 07:28:00 GMT')),
    'directory_rate_limited',
  ),
  'asks once for a pause of an hour': list(first(1, retryAfter('3600')), 'directory_rate_limited'),
  'asks for pauses for ever': list(retryAfter('0'), 'directory_rate_limited'),
  'times out a few times': reads(first(3, status(408))),
  'is away for a moment': reads(first(2, status(502))),
  'hangs up a few times': reads(first(3, hangUp)),
  'fails in the middle for a while': reads(inTheMiddle(status(502), 4), hundreds),
  'hangs up in the middle for a while': reads(inTheMiddle(halfAReply, 4), hundreds),
  'leads to the same path with a slash': invalid(status(301, { Location: '/scim/v2/Groups/' })),
  'leads to a page to log in': invalid(status(302, { Location: 'https://a.example/' })),
  'repeats the token as its error': invalid(({ authorization }) => ({
    status: 400,
    body: { detail: authorization, scimType: authorization?.slice(7) },
  })),
  'repeats the token as a name': invalid(({ authorization }) => ({
    body: { totalResults: 1, Resources: [{ id: 'a', displayName: authorization?.slice(7) }] },
  })),
  // The groups after it move up by one, so that one is on neither page; a second reading finds it.
  'loses a group between two pages': {
    groups: hundreds,
    quirk: ofList(({ before, query }) =>
      before === 0 ? { body: listOf([...groupsNamed('gone'), ...hundreds], query) } : undefined,
    ),
    ends: hundreds.length + 1,
  },
  'gives a part of the list': invalid(status(206)),
  'fails in the middle': { groups: hundreds, quirk: inTheMiddle(status(500)), ends: 'directory_failing' },
  'refuses the token in the middle': {
    groups: hundreds,
    quirk: inTheMiddle(status(401)),
    ends: 'directory_unauthorized',
  },
  'fails for ever': list(status(500), 'directory_failing'),
  'never answers': list(hangUp, 'directory_unreachable'),
  'knows no groups': { quirk: () => status(404), ends: 'directory_invalid_response' },
})

const MIB = 1024 * 1024
/** Small limits, so that a test sends little. */
const SMALL = {
  responseBytes: MIB / 2,
  responseElements: 40_000,
  groups: 1000,
  members: 5000,
  pages: 50,
  tries: 1,
}
const small = useAccounts({ syncLimits: SMALL })

/** Sends `head`, then repeats `part` until `bytes` are sent or the client hangs up; then `tail`. */
const tooMuch = (head: string, part: string, { bytes = 1e12, tail = '', code = 200 } = {}): Reply => ({
  send(response) {
    response.writeHead(code).write(head)
    const chunk = part.repeat(Math.ceil(65_536 / part.length))
    let left = bytes
    const go = () => {
      while (left > 0 && !response.destroyed) {
        left -= chunk.length
        if (!response.write(chunk)) return void response.once('drain', go)
      }
      response.end(tail)
    }
    go()
  },
})
const GOOD = '{"totalResults":1,"Resources":[{"id":"1","displayName":"A"'
const packed: Reply = {
  send: (response) =>
    response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(Buffer.alloc(20 * MIB, ' '))),
}

/** Small pages that together have too many members. */
const manyMembers: Quirk = (asked) => {
  const members = Array.from({ length: 2000 }, (_, index) => ({ value: `${index}` }))
  const groups = [0, 1].map((index) => ({ id: `${startIndexOf(asked) + index}`, displayName: 'A', members }))
  return { body: { totalResults: 10_000, Resources: groups } }
}
const endlessCursors: Quirk = ({ before }) => ({
  body: { Resources: [{ id: `${before}`, displayName: 'A' }], nextCursor: `cursor-${before}` },
})
/** Pages by cursor, whose total counts one group more than they have. */
const oneTooMany: Quirk = ({ path, query }) => {
  if (path === '/ServiceProviderConfig') return { body: { pagination: { cursor: true } } }
  if (path !== '/Groups') return undefined
  const start = Number(query.get('cursor'))
  const end = start + Number(query.get('count'))
  const more = end < hundreds.length && { nextCursor: String(end) }
  return { body: { totalResults: 251, Resources: hundreds.slice(start, end), ...more } }
}

describeDirectories(small, {
  'sends blanks without end': tooLarge(tooMuch('', ' ')),
  'sends few bytes that become many': tooLarge(packed),
  'sends nothing but opening brackets': tooLarge(tooMuch('{"Resources":', '[')),
  'sends lists in lists, all of them closed': tooLarge(
    tooMuch(`${GOOD},"x":${'['.repeat(10_000)}`, ']', { bytes: 1 }),
  ),
  'sends empty objects beside a good group': tooLarge(
    tooMuch(`${GOOD}}],"x":[{}`, ',{}', { bytes: 300_000, tail: ']}' }),
  ),
  'sends members without end': tooLarge(tooMuch(`${GOOD},"members":[{"value":"0"}`, ',{"value":"1"}')),
  'sends a text without end': tooLarge(tooMuch(`${GOOD},"x":"`, 'x')),
  'sends a number without end': tooLarge(tooMuch(`${GOOD},"x":`, '1')),
  'sends more members than a sync may have': tooLarge(manyMembers),
  'sends cursors without end': tooLarge(endlessCursors),
  'has a total beyond the groups of its cursors': { quirk: oneTooMany, ends: 'directory_incomplete' },
  'has more groups than a sync may have': { groups: manyGroups(1001), ends: 'directory_too_large' },
  'sends an error of many bytes': invalid(tooMuch('', ' ', { bytes: 4 * MIB, tail: '{}', code: 400 })),
})

it('pages with too many bytes are requested in smaller parts, down to one group', async () => {
  const groups = manyGroups(7).map((group) => ({ ...group, displayName: 'x'.repeat(MIB / 5) }))
  await using directory = await startDirectory(groups)
  const account = await small(directory.url)
  expect(await account.sync()).toMatchObject({ status: 'succeeded', synced_groups: 7 })
  const counts = directory.asked.map(({ query }) => query.get('count')).filter((count) => count !== null)
  expect([...new Set(counts)]).toEqual(['100', '25', '5', '1'])
})
