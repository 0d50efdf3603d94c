/** CONTRACT 5: directories with odd HTTP, or that never answer. */
import type { Failure } from '../../../../api/scim/failures.ts'
import {
  describeDirectories,
  hangUp,
  startIndexOf,
  status,
  useAccounts,
  type DirectoryCase,
} from '../../../support/scim/directory-case.ts'
import {
  groupsNamed,
  listOf,
  manyGroups,
  type Quirk,
  type Reply,
  ofList,
} from '../../../support/scim/faulty-directory.ts'

/** Answers from this request for the list on. */
const faultsFirst = (faults: number, reply: Reply): Quirk =>
  ofList(({ before }) => (before < faults ? reply : undefined))

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

const some = manyGroups(3)
const hundreds = manyGroups(250)

/** A directory whose groups are read in spite of this. */
const reads = (quirk: Quirk, groups = some): DirectoryCase => ({ groups, quirk, ends: groups.length })
/** A list that ends the sync. */
const fails = (ends: Failure, reply: Quirk): DirectoryCase => ({ quirk: ofList(reply), ends })
/** A fault of the second page, at the first `most` requests. */
const inTheMiddle = (reply: Reply, most = Infinity): Quirk =>
  ofList((asked) => (startIndexOf(asked) > 100 && asked.before < most ? reply : undefined))
const retryAfter = (value: string) => status(429, { 'Retry-After': value })
const soon = new Date(Date.now() + 2000).toUTCString()

describeDirectories(useAccounts(), {
  'asks for a pause, in seconds': reads(faultsFirst(2, retryAfter('1'))),
  'asks for a pause in words': reads(faultsFirst(1, retryAfter('soon'))),
  'asks for a pause until a time': reads(faultsFirst(2, retryAfter(soon))),
  'is overloaded and asks for fifteen pauses': reads(faultsFirst(15, status(503, { 'Retry-After': '1' }))),
  'asks once for a pause of an hour': {
    quirk: faultsFirst(1, retryAfter('3600')),
    ends: 'directory_rate_limited',
  },
  'asks for pauses for ever': fails('directory_rate_limited', () => retryAfter('0')),
  'asks for a pause of a day': fails('directory_rate_limited', () => retryAfter('86400')),
  'times out a few times': reads(faultsFirst(3, status(408))),
  'is away for a moment': reads(faultsFirst(2, status(502))),
  'hangs up a few times': reads(faultsFirst(3, hangUp)),
  'fails in the middle for a while': reads(inTheMiddle(status(502), 4), hundreds),
  'hangs up in the middle for a while': reads(inTheMiddle(halfAReply, 4), hundreds),
  'sends in small parts': reads(ofList((asked) => inParts(listOf(some, asked.query)))),
  'sends an ETag and a large header': reads(
    ofList((asked) => ({
      headers: { ETag: 'W/"1"', 'X-Large': 'x'.repeat(15_000) },
      body: listOf(some, asked.query),
    })),
  ),
  'sends hints ahead': reads(
    ofList((asked) => ({
      send: (response) => {
        response.writeEarlyHints({ link: '</style.css>; rel=preload' })
        response.end(JSON.stringify(listOf(some, asked.query)))
      },
    })),
  ),
  'leads to the same path with a slash': fails('directory_invalid_response', () =>
    status(301, { Location: '/scim/v2/Groups/' }),
  ),
  'leads to a page to log in': fails('directory_invalid_response', () =>
    status(302, { Location: 'https://a.example/' }),
  ),
  'repeats the token as its error': fails('directory_invalid_response', ({ authorization }) => ({
    status: 400,
    body: { detail: authorization, scimType: authorization?.slice(7) },
  })),
  'repeats the token as a name': fails('directory_invalid_response', ({ authorization }) => ({
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
  'gives a part of the list': fails('directory_invalid_response', () => status(206)),
  'fails in the middle': { groups: hundreds, quirk: inTheMiddle(status(500)), ends: 'directory_failing' },
  'refuses the token in the middle': {
    groups: hundreds,
    quirk: inTheMiddle(status(401)),
    ends: 'directory_unauthorized',
  },
  'fails for ever': fails('directory_failing', () => status(500)),
  'never answers': fails('directory_unreachable', () => hangUp),
  'knows no groups': { quirk: () => status(404), ends: 'directory_invalid_response' },
  ...Object.fromEntries(
    [status(401), status(429), status(500), status(302), hangUp].map((reply, index) => [
      `fails at its configuration (${index})`,
      reads(config(reply)),
    ]),
  ),
})
