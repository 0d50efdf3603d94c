/**
 * The lifecycle of a second real SCIM server, better-auth with its plugin. It is not a dependency of the project;
 * SCIM_SERVER names a folder with the installed packages of .ci/scim-server/package.json, as .ci/run sets it.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { hasFolder } from '../../../support/programs.ts'
import { liveThrough } from '../../../support/scim/scim-life.ts'
import { startScimServer } from '../../../support/scim/scim-server.ts'
import { TestStores } from '../../../support/stores.ts'
import { startSyncApi } from '../../../support/scim/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'

async function startBetterAuth() {
  const server = await startScimServer(join(import.meta.dirname, 'better-auth-server.js'), {
    token: randomBytes(32).toString('hex'),
    member: (value) => ({ value }),
  })
  const user = (name: string) => {
    const email = `${name}@example.com`
    return server.make('/Users', {
      schemas: [USER],
      userName: email,
      name: { givenName: name, familyName: 'Example' },
      emails: [{ value: email, primary: true }],
      active: true,
    })
  }
  return { ...server, user }
}

describe.runIf(hasFolder('SCIM_SERVER'))('better-auth', () => {
  it.each(stores.all)('is synced over its whole lifecycle on $name', async ({ fresh }) => {
    await using directory = await startBetterAuth()
    await liveThrough(directory, await fresh())
  })

  it.each(['inline', 'per_group'] as const)('returns its 150 groups, members %s', async (members) => {
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
