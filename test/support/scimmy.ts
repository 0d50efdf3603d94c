/** Starts scimmy-server.ts and speaks SCIM to it, as an administrator of the directory would. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { z } from 'zod'

const SERVER = join(import.meta.dirname, 'scimmy-server.ts')
export const SCIMMY_TOKEN = 'scimmy-token'
/** The name of groups that scimmy-server.ts does not list. */
const HIDDEN = 'Hidden'

/** A directory of the published packages on this major version of Express. */
export async function startScimmy(express: 4 | 5) {
  const child = spawn(process.execPath, [SERVER], {
    env: { ...process.env, EXPRESS: String(express), TOKEN: SCIMMY_TOKEN },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
  const url = String(line).trim()

  async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${SCIMMY_TOKEN}`, 'Content-Type': 'application/scim+json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.status === 204 ? undefined : await response.json()
  }

  const group = (displayName: string, members: readonly string[], externalId?: string) => ({
    externalId,
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
    displayName,
    members: members.map((value) => ({ value, type: 'User', display: `User ${value}` })),
  })

  return {
    url,
    /** Makes a group; resolves to its id. */
    async add(name: string, members: readonly string[] = [], externalId?: string): Promise<string> {
      const made = await ask('POST', '/Groups', group(name, members, externalId))
      return z.object({ id: z.string() }).parse(made).id
    },
    put: (id: string, name: string, members: readonly string[] = [], externalId?: string) =>
      ask('PUT', `/Groups/${id}`, group(name, members, externalId)),
    /** Takes a group out of the list, while it can still be read. */
    hide: (id: string) => ask('PUT', `/Groups/${id}`, group(HIDDEN, [])),
    remove: (id: string) => ask('DELETE', `/Groups/${id}`),
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
    },
  }
}
