/** A small SCIM directory that works, except for the faults that a test plants. */
import { createServer, type ServerResponse } from 'node:http'
import { listen } from '../ports.ts'

export const DIRECTORY_TOKEN = 'directory-token'

export type DirectoryGroup = {
  readonly id: string
  readonly displayName: string
  readonly externalId?: string
  readonly members?: readonly Readonly<Record<string, string>>[] | null
}

/** An answer of the directory: `body` as SCIM JSON, or the output of `send`. */
export type Reply =
  | { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body: unknown }
  | { readonly send: (response: ServerResponse) => void }

/** A request as the directory receives it. */
export type Asked = {
  /** Path below the base address: `/Groups`, `/Groups/7`, `/ServiceProviderConfig`. */
  readonly path: string
  readonly query: URLSearchParams
  readonly authorization: string | undefined
  /** Number of earlier requests for the same path. */
  readonly before: number
}

/** Answers instead of the directory; undefined leaves the answer to the directory. */
export type Quirk = (asked: Asked) => Reply | undefined

const BASE = '/scim/v2'

/** Groups with these ids and names, with one member each. */
export function groupsNamed(...ids: readonly string[]): DirectoryGroup[] {
  return ids.map((id) => ({ id, displayName: `Group ${id}`, members: [{ value: `user-of-${id}` }] }))
}

/** Groups numbered from 1. */
export function manyGroups(count: number): DirectoryGroup[] {
  return groupsNamed(...Array.from({ length: count }, (_, index) => String(index + 1)))
}

/** A quirk that holds requests for the list of groups until `open` is called. */
export function gate() {
  const waiting: (() => void)[] = []
  let isOpen = false
  const quirk: Quirk = ({ path, authorization }) => {
    if (path !== '/Groups' || isOpen || authorization !== `Bearer ${DIRECTORY_TOKEN}`) return undefined
    return {
      send: (response) => {
        waiting.push(() => response.writeHead(500).end())
      },
    }
  }
  const open = () => {
    isOpen = true
    for (const answer of waiting) answer()
  }
  return { quirk, open, waiting: () => waiting.length }
}

/** Starts the directory; `groups` may be changed while it runs. */
export async function startDirectory(groups: DirectoryGroup[], { quirk }: { readonly quirk?: Quirk } = {}) {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://directory')
    const path = url.pathname.replace(BASE, '')
    const before = asked.filter((other) => other.path === path).length
    const now = { path, query: url.searchParams, authorization: request.headers.authorization, before }
    asked.push(now)
    send(response, quirk?.(now) ?? usualReply(groups, now))
  })
  const listening = await listen(server)
  return { ...listening, groups, asked, url: `http://127.0.0.1:${listening.port}${BASE}` }
}

/** The answer of a directory without faults. */
export function usualReply(groups: readonly DirectoryGroup[], { authorization, path, query }: Asked): Reply {
  if (authorization !== `Bearer ${DIRECTORY_TOKEN}`) return { status: 401, body: { status: '401' } }
  if (path === '/ServiceProviderConfig') return { body: {} }
  if (path === '/Groups') return { body: listOf(groups, query) }
  const id = decodeURIComponent(path.replace('/Groups/', ''))
  const group = groups.find((candidate) => candidate.id === id)
  return group === undefined ? { status: 404, body: { status: '404' } } : { body: group }
}

/** A page of the list of groups, of at most `most`. */
export function listOf(groups: readonly DirectoryGroup[], query: URLSearchParams, most = 1000) {
  const startIndex = Number(query.get('startIndex') ?? 1)
  const count = Math.min(Number(query.get('count') ?? 20), most)
  const page = groups.slice(startIndex - 1, startIndex - 1 + count)
  const isBare = query.get('excludedAttributes') === 'members'
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults: groups.length,
    startIndex,
    itemsPerPage: page.length,
    Resources: isBare ? page.map(({ members: _members, ...rest }) => rest) : page,
  }
}

function send(response: ServerResponse, reply: Reply): void {
  if ('send' in reply) {
    reply.send(response)
    return
  }
  response.writeHead(reply.status ?? 200, { 'Content-Type': 'application/scim+json', ...reply.headers })
  response.end(JSON.stringify(reply.body))
}

/** A quirk of the list of groups only. */
export function ofList(quirk: Quirk): Quirk {
  return (asked) => (asked.path === '/Groups' ? quirk(asked) : undefined)
}

export const startIndexOf = ({ query }: Asked) => Number(query.get('startIndex') ?? 1)
export const refused: Reply = { status: 400, body: { scimType: 'invalidValue' } }
export const status = (code: number, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status: code,
  headers,
  body: { status: String(code) },
})
export const hangUp: Reply = { send: (response) => response.destroy() }
