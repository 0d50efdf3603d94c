/** A foreign SCIM server as a process, with its administrator's requests. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { z } from 'zod'
import { until } from '../api.ts'

interface ScimServerOptions {
  /** The server's token; the program reads it from TOKEN. */
  readonly token: string
  /** A member of a group in a request. */
  readonly member: (id: string) => { readonly value: string }
}

const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group'
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
const madeSchema = z.looseObject({ id: z.string() })

/** Starts a program that prints the address of its SCIM server. */
export async function startScimServer(
  [program = '', ...args]: readonly string[],
  { token, member }: ScimServerOptions,
) {
  const child = spawn(program, args, {
    env: { ...process.env, PYTHONUNBUFFERED: '1', TOKEN: token },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (output += String(part)))
  const url = await until(() => {
    if (child.exitCode !== null) throw new Error(`${program} ended: ${output}`)
    return /http:\/\/\S+/.exec(output)?.[0]
  })

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
    /** Creates a user; resolves to its id. */
    user: (name: string) => {
      const email = `${name}@example.com`
      return make('/Users', {
        schemas: [USER],
        userName: email,
        name: { givenName: name, familyName: 'Example' },
        emails: [{ value: email, primary: true }],
        active: true,
      })
    },
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
