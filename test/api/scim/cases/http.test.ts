/** CONTRACT 5: directories with odd HTTP, or that never answer. */
import {
  describeDirectories,
  hangUp,
  startIndexOf,
  status,
  useAccounts,
} from '../../../support/scim/directory-case.ts'
import { listOf, manyGroups, type Quirk, type Reply, ofList } from '../../../support/scim/faulty-directory.ts'

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

describeDirectories(useAccounts(), {
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
    ends: 'directory_failing',
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
  'fails for ever': { quirk: ofList(() => status(500)), ends: 'directory_failing' },
  'never answers': { quirk: ofList(() => hangUp), ends: 'directory_unreachable' },
  'knows no groups': { quirk: () => status(404), ends: 'directory_invalid_response' },
  'refuses the token for its configuration': { groups: some, quirk: config(status(401)), ends: 3 },
  'is asked too often for its configuration': { groups: some, quirk: config(status(429)), ends: 3 },
  'fails at its configuration': { groups: some, quirk: config(status(500)), ends: 3 },
  'hangs up at its configuration': { groups: some, quirk: config(hangUp), ends: 3 },
  'redirects its configuration': { groups: some, quirk: config(status(302)), ends: 3 },
})
