/** A foreign SCIM server as a process, with its administrator's requests. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { z } from 'zod'

interface ScimServerOptions {
  /** The server's token; the program reads it from TOKEN. */
  readonly token: string
  readonly environment?: Readonly<Record<string, string>>
  /** A member of a group in a request. */
  readonly member: (id: string) => { readonly value: string }
}

const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group'
const madeSchema = z.looseObject({ id: z.string() })

/** Starts a program that prints the address of its SCIM server. */
export async function startScimServer(program: string, { token, environment, member }: ScimServerOptions) {
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, ...environment, TOKEN: token },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
  const url = String(line).trim()

  async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/scim+json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.status === 204 ? undefined : await response.json()
  }

  const make = async (path: string, body: unknown) => madeSchema.parse(await ask('POST', path, body)).id
  const group = (displayName: string, members: readonly string[], externalId?: string) => ({
    schemas: [GROUP],
    displayName,
    externalId,
    members: members.map(member),
  })

  return {
    url,
    token,
    /** Creates a resource at a path; resolves to its id. */
    make,
    /** Creates a group; resolves to its id. */
    add: (name: string, members: readonly string[] = [], externalId?: string) =>
      make('/Groups', group(name, members, externalId)),
    put: (id: string, name: string, members: readonly string[] = [], externalId?: string) =>
      ask('PUT', `/Groups/${id}`, group(name, members, externalId)),
    remove: (id: string) => ask('DELETE', `/Groups/${id}`),
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
    },
  }
}
