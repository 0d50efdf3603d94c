/**
 * CONTRACT 5: whole lifecycles of real SCIM servers. They are no dependencies of the project: SCIM_SERVER names a folder
 * with the packages of .ci/scim-server/, as .ci/run installs them.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { FAILURES } from '../../../../api/scim/failures.ts'
import type { StoreSettings } from '../../../../api/store/open-store.ts'
import { until } from '../../../support/api.ts'
import { LONG } from '../../../support/long.ts'
import { freePort } from '../../../support/ports.ts'
import { startProcess } from '../../../support/processes.ts'
import { findProgram, hasFolder } from '../../../support/programs.ts'
import { directories, startSyncApi } from '../../../support/scim/sync.ts'
import { stores } from '../../../support/stores.ts'

/** A SCIM server in its administrator's hands. */
type LivingDirectory = Awaited<ReturnType<typeof startScimServer>> & {
  /** Removes a group from the list while it stays readable by its id, on servers that can. */
  readonly hide?: (id: string) => Promise<unknown>
}

const GROUPS = 30

/** Lives through it; each chapter ends with the state that an administrator sees. */
async function liveThrough(directory: LivingDirectory, store: StoreSettings): Promise<void> {
  await using service = await startSyncApi(store, { token: directory.token })
  const acme = await service.connect(directory.url)
  const idOf = async (externalId: string | undefined) =>
    (await acme.groups()).data.find(({ external_id }) => external_id === externalId)?.id
  const succeeds = async (synced_groups: number, deleted_groups = 0) =>
    expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups, deleted_groups })

  // An empty directory, then a first sync.
  await succeeds(0)
  const [ann = '', bob = '', cid = ''] = await Promise.all(['ann', 'bob', 'cid'].map(directory.user))
  const groups: string[] = []
  for (let number = 0; number < GROUPS; number += 1)
    groups.push(await directory.add(`Team ${number}`, [ann, bob].slice(0, number % 3), `external-${number}`))
  await succeeds(GROUPS)
  expect(await acme.all()).toMatchObject({ 'Team 0': [], 'Team 1': [ann], 'Team 2': [ann, bob].toSorted() })

  // A new name, a new member, a new group, and a removed one.
  const [renamed = '', grown = '', gone = ''] = groups
  const before = await idOf(renamed)
  await directory.put(renamed, 'Renamed', [], 'external-0')
  await directory.put(grown, 'Team 1', [ann, cid], 'external-1')
  await directory.remove(gone)
  await directory.add('Added', [bob], 'external-added')
  await succeeds(GROUPS, 1)
  expect(await idOf(renamed)).toBe(before)
  expect(await acme.all()).toMatchObject({ Renamed: [], 'Team 1': [ann, cid].toSorted(), Added: [bob] })
  await directory.put(grown, 'Team 1', [ann], 'external-1')
  await succeeds(GROUPS)
  expect(await acme.all()).toMatchObject({ 'Team 1': [ann] })

  // The last member leaves.
  await directory.put(grown, 'Team 1', [], 'external-1')
  await succeeds(GROUPS)
  expect(await acme.all()).toMatchObject({ 'Team 1': [] })

  // Two thirds vanish at once: the gate keeps them until the operator accepts the removal.
  const known = await idOf(groups[20])
  for (const group of groups.slice(10)) await directory.remove(group)
  expect(await acme.sync()).toMatchObject({
    status: 'failed',
    error_message: FAILURES.deletion_threshold_exceeded,
  })
  expect((await acme.groups()).total_count).toBe(GROUPS)
  const accepted = await directories(store, 'sync --account acme --allow-deletions', directory.token)
  expect(accepted).toMatchObject({ code: 0 })
  expect((await acme.groups()).total_count).toBe(10)

  // A group created again under its externalId keeps its identity.
  const back = await directory.add('Team 20 again', [cid], 'external-20')
  await succeeds(11)
  expect(await idOf(back)).toBe(known)

  // A group that is readable but not listed.
  if (directory.hide === undefined) return
  await directory.hide(grown)
  await succeeds(10, 1)
  expect(await idOf(grown)).toBeUndefined()
}

type ScimServerOptions = {
  /** The server's token; the program reads it from TOKEN. */
  readonly token: string
  /** A member of a group in a request. */
  readonly member: (id: string) => { readonly value: string }
}

const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group'
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
const madeSchema = z.looseObject({ id: z.string() })

/** Starts a program that prints the address of its SCIM server. */
async function startScimServer(
  [program = '', ...args]: readonly string[],
  { token, member }: ScimServerOptions,
) {
  const environment = { PYTHONUNBUFFERED: '1', TOKEN: token }
  const { child, output, ended } = startProcess(program, args, { environment })
  const url = await until(() => {
    const printed = output.stdout + output.stderr
    if (child.exitCode !== null) throw new Error(`${program} ended: ${printed}`)
    return /http:\/\/\S+(?=\s)/.exec(printed)?.[0]
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

const FOLDER = process.env['SCIM_SERVER'] ?? ''
const fileOf = (name: string) => join(import.meta.dirname, 'servers', name)
const plain = (value: string) => ({ value })
const typed = (value: string) => ({ value, type: 'User', display: `User ${value}` })

type Start = () => Promise<LivingDirectory>

const started =
  (command: readonly string[], member: (id: string) => { readonly value: string } = plain): Start =>
  () =>
    startScimServer(command, { token: newToken(), member })

const newToken = () => randomBytes(32).toString('hex')

const scim2 =
  (...more: string[]): Start =>
  async () => {
    const token = newToken()
    const program = join(FOLDER, 'venv/bin/scim2-server')
    const args = ['--port', String(await freePort()), '--bearer-token', token, ...more]
    return await startScimServer([program, ...args], { token, member: plain })
  }

const scimmy: Start = async () => {
  const server = await started([process.execPath, fileOf('scimmy.js')], typed)()
  // Takes a group out of the list while it stays readable.
  const hide = (id: string) => server.put(id, 'Hidden')
  return { ...server, user: async (name) => name, hide }
}

const SERVERS: Readonly<Record<string, readonly [needs: string, start: Start]>> = {
  scimmy: ['node_modules/scimmy', scimmy],
  'better-auth': ['node_modules/better-auth', started([process.execPath, fileOf('better-auth.js')])],
  'scim2-server by index': ['venv/bin/scim2-server', scim2()],
  'scim2-server by cursor': [
    'venv/bin/scim2-server',
    scim2('--service-provider-config', fileOf('scim2-cursor.json')),
  ],
  'elimity-com/scim': ['bin/elimity', started([join(FOLDER, 'bin/elimity')])],
}

const isFolderSet = hasFolder('SCIM_SERVER')

for (const [name, [needs, start]] of Object.entries(SERVERS)) {
  describe.runIf(isFolderSet && findProgram(needs, [FOLDER]) !== undefined)(name, () => {
    it.each(stores.all)('is synced over its whole lifecycle on $name', LONG, async ({ fresh }) => {
      await using directory = await start()
      await liveThrough(directory, await fresh())
    })

    it.each(['inline', 'per_group'] as const)('returns its 150 groups, members %s', async (members) => {
      await using directory = await start()
      await using service = await startSyncApi(await stores.sqlite.fresh(), { token: directory.token })
      const ann = await directory.user('ann')
      for (let number = 0; number < 150; number += 1) await directory.add(`Group ${number}`, [ann])
      const acme = await service.connect(directory.url, { members })
      expect(await acme.sync()).toMatchObject({ status: 'succeeded', synced_groups: 150 })
      expect(Object.values(await acme.all())).toEqual(Array.from({ length: 100 }, () => [ann]))
    })

    it('reports a rejected token', async () => {
      await using directory = await start()
      await using service = await startSyncApi(await stores.sqlite.fresh(), { token: 'another-token' })
      const acme = await service.connect(directory.url)
      expect((await acme.sync()).error_message).toBe(FAILURES.directory_unauthorized)
    })
  })
}
