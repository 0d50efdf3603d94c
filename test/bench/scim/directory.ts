/**
 * A SCIM directory without work of its own, as a separate process: every page is prepared as bytes before the
 * first request. The size comes as JSON argument; the port is the one line on stdout.
 */
import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import { z } from 'zod'
import { listen } from '../../support/ports.ts'

const taskSchema = z.object({
  groups: z.int(),
  membersPerGroup: z.int(),
  /** Milliseconds per page. */
  pageMs: z.number(),
  /** Another number gives every group other members. */
  shift: z.int().default(0),
})
type Task = z.infer<typeof taskSchema>
export type DirectoryTask = z.input<typeof taskSchema>

const PAGE = 100
const CONFIG = Buffer.from(JSON.stringify({ pagination: { cursor: false } }))

/** Ids like most directories': long and unordered. */
const idOf = (thing: string) => hash('md5', thing).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

function groupOf(number: number, { membersPerGroup, shift }: Task) {
  const id = idOf(`group ${number}`)
  return {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
    id,
    externalId: `external-${number}`,
    displayName: `Group ${number}`,
    members: Array.from({ length: membersPerGroup }, (_, index) => {
      const user = number * 7 + index * 31 + shift * 10_000_000
      const value = idOf(`user ${user}`)
      return {
        value,
        $ref: `https://scim.example.com/v2/Users/${value}`,
        type: 'User',
        display: `User ${user}`,
      }
    }),
    meta: { resourceType: 'Group', location: `https://scim.example.com/v2/Groups/${id}` },
  }
}

function pageFrom(first: number, task: Task): Buffer {
  const length = Math.max(0, Math.min(PAGE, task.groups - first))
  return Buffer.from(
    JSON.stringify({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
      totalResults: task.groups,
      startIndex: first + 1,
      itemsPerPage: length,
      Resources: Array.from({ length }, (_, index) => groupOf(first + index, task)),
    }),
  )
}

const task = taskSchema.parse(JSON.parse(process.argv[2] ?? ''))
const pages = new Map<string, Buffer>()
for (let first = 0; first < task.groups; first += PAGE) pages.set(String(first + 1), pageFrom(first, task))
pages.set(String(task.groups + 1), pageFrom(task.groups, task))

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://directory')
  const isConfig = pathname.endsWith('/ServiceProviderConfig')
  const body = isConfig ? CONFIG : pages.get(searchParams.get('startIndex') ?? '')
  response.writeHead(body === undefined ? 404 : 200, { 'Content-Type': 'application/scim+json' })
  if (task.pageMs === 0) response.end(body)
  else setTimeout(() => response.end(body), task.pageMs)
})
const { port } = await listen(server)
process.stdout.write(`${port}\n`)
