/** Directory sync as its users see it: an account with a connection, and a job from start to end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { directories as runDirectories } from '../../../api/commands/directories.ts'
import type { StoreSettings } from '../../../api/store/open-store.ts'
import { SYNC_LIMITS, type SyncLimits } from '../../../api/scim/client.ts'
import { NEW_CONNECTION, putConnection, type ConnectionSettings } from '../../../api/scim/connections.ts'
import type { HttpLimits } from '../../../api/http/server.ts'
import type { JobDependencies } from '../../../api/scim/jobs.ts'
import { startApi, until, type Api } from '../api.ts'
import { runCommandLine } from '../processes.ts'
import { DIRECTORY_TOKEN } from './faulty-directory.ts'
import { asEnvironment } from '../stores.ts'

/** A job for a strict client (CONTRACT 5): all eight keys, always. */
export const jobSchema = z.strictObject({
  id: z.uuid(),
  status: z.enum(['queued', 'running', 'succeeded', 'failed']),
  synced_groups: z.int().nullable(),
  deleted_groups: z.int().nullable(),
  error_message: z.string().nullable(),
  created_at: z.iso.datetime({ precision: 3 }),
  started_at: z.iso.datetime({ precision: 3 }).nullable(),
  finished_at: z.iso.datetime({ precision: 3 }).nullable(),
})

const jobReplySchema = z.strictObject({ data: jobSchema })
const jobsSchema = z.strictObject({ data: z.array(jobSchema), total_count: z.int() })

const partSchema = z.strictObject({ count: z.int(), names: z.array(z.string()) })
const changesSchema = z.strictObject({
  data: z.strictObject({
    groups_added: partSchema,
    groups_renamed: partSchema,
    groups_deleted: partSchema,
    members_joined: partSchema,
    members_left: partSchema,
    warnings: z.array(z.string()),
  }),
})

const groupsSchema = z.strictObject({
  data: z.array(
    z.strictObject({
      id: z.uuid(),
      organization_id: z.uuid(),
      external_id: z.string(),
      display_name: z.string(),
      member_count: z.int().nullable(),
      created_at: z.iso.datetime({ precision: 3 }),
      updated_at: z.iso.datetime({ precision: 3 }),
    }),
  ),
  total_count: z.int(),
})

const membersSchema = z.strictObject({
  data: z.array(
    z.strictObject({ id: z.string(), type: z.string().nullable(), display_name: z.string().nullable() }),
  ),
  total_count: z.int().nullable(),
})

/** The variable with the token in tests. */
export const TOKEN_VARIABLE = 'DIRECTORY_TOKEN'

/** Zero pauses, and a lease short enough to wait for, but too long for a busy machine to miss. */
const QUICK = {
  limits: { ...SYNC_LIMITS, backoffMs: 1, slowDownMs: 5000 } satisfies SyncLimits,
  leaseMs: 10_000,
  wait: async () => await sleep(0),
} satisfies Partial<JobDependencies>

/** A connection to a directory on this machine. */
export function connectionTo(url: string, more: Partial<ConnectionSettings> = {}): ConnectionSettings {
  return {
    ...NEW_CONNECTION,
    url,
    token_kind: 'env',
    token_source: TOKEN_VARIABLE,
    allow_loopback: 1,
    ...more,
  }
}

interface SyncApiOptions {
  /** The service's token for directories; by default the token of `startDirectory`. */
  readonly token?: string
  readonly sync?: Partial<JobDependencies>
  readonly clock?: () => Date
  readonly settings?: Readonly<Record<string, string>>
  readonly limits?: Partial<HttpLimits>
}

/** A running service, with an administrator's actions. */
export async function startSyncApi(
  store: StoreSettings,
  { token = DIRECTORY_TOKEN, sync, clock, settings, limits = {} }: SyncApiOptions = {},
) {
  const api = await startApi(store.DATA_DIR, {
    environment: { ...asEnvironment(store), [TOKEN_VARIABLE]: token, ...settings },
    sync: { ...QUICK, ...sync },
    limits,
    ...(clock === undefined ? {} : { clock }),
  })
  return {
    ...api,
    administrator: (key: string) => administratorOf(api, key),
    /** Connects an account to the directory; returns its administrator. */
    async connect(
      url: string,
      { account = 'acme', ...more }: Partial<ConnectionSettings> & { account?: string } = {},
    ) {
      const key = await api.makeKey('management', account)
      await putConnection(api.store, account, connectionTo(url, more), new Date())
      return administratorOf(api, key)
    },
  }
}

/** Runs a command line of `directories` in this process; double quotes hold words together. */
export function directories(store: StoreSettings, line: string, token = DIRECTORY_TOKEN) {
  const environment = { ...asEnvironment(store), [TOKEN_VARIABLE]: token, LOG_LEVEL: 'silent' }
  const args = Array.from(line.matchAll(/"([^"]*)"|\S+/g), ([word, quoted]) => quoted ?? word)
  return runCommandLine((commandLine) => runDirectories(commandLine, () => undefined), args, environment)
}

/** Requests of an account with a management key. */
export function administratorOf(api: Pick<Api, 'get'>, key: string) {
  const read = async (path: string) => await (await api.get(path, key)).json()
  const post = async () => {
    const response = await api.get('/scim/sync-jobs', key, { method: 'POST' })
    return { response, job: jobReplySchema.parse(await response.json()).data }
  }
  const job = async (id: string) => jobReplySchema.parse(await read(`/scim/sync-jobs/${id}`)).data
  const end = (id: string) =>
    until(async () => {
      const seen = await job(id)
      return seen.finished_at !== null && seen
    })
  return {
    key,
    post,
    job,
    end,
    /** Starts a job and waits for its end. */
    sync: async () => await end((await post()).job.id),
    changes: async (id: string) => changesSchema.parse(await read(`/scim/sync-jobs/${id}/changes`)).data,
    jobs: async (query = '') => jobsSchema.parse(await read(`/scim/sync-jobs${query}`)),
    groups: async (query = '?limit=100') => groupsSchema.parse(await read(`/scim/groups${query}`)),
    members: async (id: string) => membersSchema.parse(await read(`/scim/groups/${id}/members?limit=100`)),
    /** Names of the groups and of their members' ids, sorted: `{ Staff: ['ann', 'bob'] }`. */
    async all() {
      const { data } = groupsSchema.parse(await read('/scim/groups?limit=100'))
      const entries = data.map(async ({ id, display_name }) => {
        const members = membersSchema.parse(await read(`/scim/groups/${id}/members?limit=100`))
        // The stores sort texts differently.
        const ids = members.data.map((member) => member.id).toSorted()
        return [display_name, members.total_count === null ? null : ids]
      })
      return Object.fromEntries(await Promise.all(entries))
    },
  }
}
