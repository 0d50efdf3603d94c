/**
 * A second real SCIM server, better-auth with its plugin: its whole life is followed. It is not among the packages of the
 * project; SCIM_SERVER names a folder into which those of .ci/scim-server/package.json were installed, as .ci/run does.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { hasFolder } from '../../../support/programs.ts'
import { liveThrough } from '../../../support/scim-life.ts'
import { TestStores } from '../../../support/stores.ts'
import { startSyncApi } from '../../../support/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group'
const madeSchema = z.looseObject({ id: z.string() })

/** Starts the server, and speaks SCIM to it. */
async function startBetterAuth() {
  const token = randomBytes(32).toString('hex')
  const child = spawn(process.execPath, [join(import.meta.dirname, 'better-auth-server.js')], {
    env: { ...process.env, TOKEN: token },
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
  const group = (displayName: string, members: readonly string[], externalId?: string) => ({
    schemas: [GROUP],
    displayName,
    externalId,
    members: members.map((value) => ({ value })),
  })

  return {
    url,
    token,
    async user(name: string): Promise<string> {
      const email = `${name}@example.com`
      const sent = {
        schemas: [USER],
        userName: email,
        name: { givenName: name, familyName: 'Example' },
        emails: [{ value: email, primary: true }],
        active: true,
      }
      return madeSchema.parse(await ask('POST', '/Users', sent)).id
    },
    add: async (name: string, members: readonly string[] = [], externalId?: string) =>
      madeSchema.parse(await ask('POST', '/Groups', group(name, members, externalId))).id,
    put: (id: string, name: string, members: readonly string[] = [], externalId?: string) =>
      ask('PUT', `/Groups/${id}`, group(name, members, externalId)),
    remove: (id: string) => ask('DELETE', `/Groups/${id}`),
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
    },
  }
}

describe.runIf(hasFolder('SCIM_SERVER'))('better-auth', () => {
  it.each(stores.all)('has its whole life followed on $name', async ({ fresh }) => {
    await using directory = await startBetterAuth()
    await liveThrough(directory, await fresh())
  })

  it.each(['inline', 'per_group'] as const)('gives its 150 groups, members %s', async (members) => {
    await using directory = await startBetterAuth()
    await using service = await startSyncApi(await stores.sqlite.fresh(), { token: directory.token })
    const ann = await directory.user('ann')
    for (let number = 0; number < 150; number += 1) await directory.add(`Group ${number}`, [ann])
    const acme = await service.connect(directory.url, { members })
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 150 })
    const { data } = await acme.members((await acme.groups()).data[0]?.id ?? '')
    expect(data).toEqual([{ id: ann, type: 'User', display_name: 'ann Example', active: null, email: null }])
  })
})
