/** The measured cases of directory sync's part of the bench, each in a process of its own. */
import { subscribe } from 'node:diagnostics_channel'
import { Agent } from 'undici'
import { z } from 'zod'
import { directories } from '../../../api/commands/directories.ts'
import { SYNC_LIMITS } from '../../../api/scim/client.ts'
import { runCommandLine } from '../../support/processes.ts'
import { timed, type Figures } from '../measure.ts'

/** Requests of this process. */
let requests = 0
subscribe('undici:request:create', () => {
  requests += 1
})

const pageSchema = z.object({ Resources: z.array(z.unknown()) })

/** Baseline: the same requests, each page read and parsed, without further work. */
export async function readPages({ url }: { readonly url: string }): Figures {
  const { origin, pathname } = new URL(url)
  const agent = new Agent()
  const get = async (path: string): Promise<unknown> => {
    const { body } = await agent.request({ origin, path: `${pathname}${path}`, method: 'GET' })
    return await body.json()
  }
  const [count = 1] = SYNC_LIMITS.pageSizes
  const ms = await timed(async () => {
    await get('/ServiceProviderConfig')
    // A page without groups ends the list.
    for (let rows = 0, length = 1; length > 0; rows += length) {
      const { Resources } = pageSchema.parse(await get(`/Groups?startIndex=${rows + 1}&count=${count}`))
      length = Resources.length
    }
  })
  await agent.close()
  return { ms, requests }
}

/** The command `sync` of `npm run directories`, of an account that is connected in the store. */
export async function sync({ dataDir }: { readonly dataDir: string }): Figures {
  const args = ['sync', '--account', 'bench']
  const environment = { DATA_DIR: dataDir, BENCH_TOKEN: 'bench-token', LOG_LEVEL: 'silent' }
  const ms = await timed(async () => {
    const { code, stderr } = await runCommandLine((line) => directories(line), args, environment)
    if (code !== 0) throw new Error(`The sync ended with ${code}: ${stderr}`)
  })
  return { ms, requests }
}
