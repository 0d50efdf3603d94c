/** Starts scimmy-server.ts, with its administrator's actions. */
import { join } from 'node:path'
import { startScimServer } from './scim-server.ts'

const SERVER = join(import.meta.dirname, 'scimmy-server.ts')
export const SCIMMY_TOKEN = 'scimmy-token'
/** Name of groups that scimmy-server.ts does not list. */
const HIDDEN = 'Hidden'

/** A directory of the packages on this major version of Express. */
export async function startScimmy(express: 4 | 5) {
  const server = await startScimServer(SERVER, {
    token: SCIMMY_TOKEN,
    environment: { EXPRESS: String(express) },
    member: (value) => ({ value, type: 'User', display: `User ${value}` }),
  })
  return {
    ...server,
    /** Removes a group from the list while it stays readable. */
    hide: (id: string) => server.put(id, HIDDEN),
  }
}
