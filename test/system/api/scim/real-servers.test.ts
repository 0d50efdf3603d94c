/**
 * CONTRACT 5: whole lifecycles of real SCIM servers. They are no dependencies of the project: SCIM_SERVER names a folder
 * with the packages of .ci/scim-server/, as .ci/run installs them.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { FAILURES } from '../../../../api/scim/failures.ts'
import { freePort } from '../../../support/ports.ts'
import { findProgram, hasFolder } from '../../../support/programs.ts'
import { liveThrough, type LivingDirectory } from '../../../support/scim/scim-life.ts'
import { startScimServer } from '../../../support/scim/scim-server.ts'
import { startSyncApi } from '../../../support/scim/sync.ts'
import { TestStores } from '../../../support/stores.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const stores = new TestStores()
afterAll(() => stores.removeAll())

const FOLDER = process.env['SCIM_SERVER'] ?? ''
const fileOf = (name: string) => join(import.meta.dirname, 'servers', name)
const plain = (value: string) => ({ value })
const typed = (value: string) => ({ value, type: 'User', display: `User ${value}` })

type Start = () => Promise<LivingDirectory & AsyncDisposable>

const inNode =
  (program: string, member = plain): Start =>
  () =>
    startScimServer([process.execPath, fileOf(program)], { token: newToken(), member })

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
  const server = await startScimServer([process.execPath, fileOf('scimmy.js')], {
    token: newToken(),
    member: typed,
  })
  return {
    ...server,
    user: async (name) => name,
    // Takes a group out of the list while it stays readable.
    hide: (id) => server.put(id, 'Hidden'),
  }
}

const elimity: Start = () =>
  startScimServer([join(FOLDER, 'bin/elimity')], { token: newToken(), member: plain })

const SERVERS: Readonly<Record<string, readonly [needs: string, start: Start]>> = {
  scimmy: ['node_modules/scimmy', scimmy],
  'better-auth': ['node_modules/better-auth', inNode('better-auth.js')],
  'scim2-server by index': ['venv/bin/scim2-server', scim2()],
  'scim2-server by cursor': [
    'venv/bin/scim2-server',
    scim2('--service-provider-config', fileOf('scim2-cursor.json')),
  ],
  'elimity-com/scim': ['bin/elimity', elimity],
}

const isFolderSet = hasFolder('SCIM_SERVER')

for (const [name, [needs, start]] of Object.entries(SERVERS)) {
  describe.runIf(isFolderSet && findProgram(needs, [FOLDER]) !== undefined)(name, () => {
    it.each(stores.all)('is synced over its whole lifecycle on $name', async ({ fresh }) => {
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
