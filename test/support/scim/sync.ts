/** Directory sync as its users see it: an account with a connection, and a job from start to end. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { directories as runDirectories } from '../../../api/commands/directories.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import { SYNC_LIMITS, type SyncLimits } from '../../../api/scim/client.ts'
import { NEW_CONNECTION, putConnection, type ConnectionSettings } from '../../../api/scim/connections.ts'
import { FAILURES, type Failure } from '../../../api/scim/failures.ts'
import type { JobDependencies } from '../../../api/scim/jobs.ts'
import { startApi, until, type Api, type ApiOptions } from '../api.ts'
import { makeFolder } from '../folders.ts'
import { listen } from '../ports.ts'
import { runCommandLine } from '../processes.ts'
import {
  DIRECTORY_TOKEN,
  ofList,
  startDirectory,
  type DirectoryGroup,
  type Quirk,
  type Reply,
} from './faulty-directory.ts'
import { asEnvironment } from '../stores.ts'

const time = z.iso.datetime({ precision: 3 })
const one = <Data extends z.ZodType>(data: Data) => z.strictObject({ data })
const page = <Row extends z.ZodType>(row: Row) =>
  z.strictObject({ data: z.array(row), total_count: z.int().nullable() })

/** A job for a strict client (CONTRACT 5): all eight keys, always. */
export const jobSchema = z.strictObject({
  id: z.uuid(),
  status: z.enum(['queued', 'running', 'succeeded', 'failed']),
  synced_groups: z.int().nullable(),
  deleted_groups: z.int().nullable(),
  error_message: z.string().nullable(),
  created_at: time,
  started_at: time.nullable(),
  finished_at: time.nullable(),
})
const partSchema = z.strictObject({ count: z.int(), names: z.array(z.string()) })
const changesSchema = z.strictObject({
  groups_added: partSchema,
  groups_renamed: partSchema,
  groups_deleted: partSchema,
  members_joined: partSchema,
  members_left: partSchema,
  warnings: z.array(z.string()),
})
const groupSchema = z.strictObject({
  id: z.uuid(),
  organization_id: z.uuid(),
  external_id: z.string(),
  display_name: z.string(),
  member_count: z.int().nullable(),
  created_at: time,
  updated_at: time,
})
const memberSchema = z.strictObject({
  id: z.string(),
  type: z.string().nullable(),
  display_name: z.string().nullable(),
})

/** The variable with the token in tests. */
export const TOKEN_VARIABLE = 'DIRECTORY_TOKEN'

/** Zero pauses, and a lease short enough to wait for, but too long for a busy machine to miss. */
const QUICK = {
  limits: { ...SYNC_LIMITS, backoffMs: 1, slowDownMs: 5000 } satisfies SyncLimits,
  leaseMs: 10_000,
  wait: async () => await sleep(0),
} satisfies Partial<JobDependencies>

/** A connection to a directory on this machine, but for its address. */
const CONNECTION = {
  ...NEW_CONNECTION,
  token_kind: 'env',
  token_source: TOKEN_VARIABLE,
  allow_loopback: 1,
} as const

type SyncApiOptions = ApiOptions & {
  /** The service's token for directories; by default the token of `startDirectory`. */
  readonly token?: string
  readonly syncLimits?: Partial<SyncLimits>
}

/** A running service, with an administrator's actions. */
export async function startSyncApi(
  store: StoreSettings,
  { token = DIRECTORY_TOKEN, syncLimits, ...options }: SyncApiOptions = {},
) {
  const api = await startApi(store.DATA_DIR, {
    ...options,
    environment: { ...asEnvironment(store), [TOKEN_VARIABLE]: token, ...options.environment },
    sync: { ...QUICK, limits: { ...QUICK.limits, ...syncLimits }, ...options.sync },
  })
  return {
    ...api,
    /** Connects an account to the directory; returns its administrator. */
    async connect(
      url: string,
      { account = 'acme', ...more }: Partial<ConnectionSettings> & { account?: string } = {},
    ) {
      const key = await api.makeKey('management', account)
      await putConnection(api.store, account, { ...CONNECTION, url, ...more })
      return administratorOf(api, key)
    },
  }
}

/** The statement that inserts a running job of a process that is not there, from the time `$1` on. */
export const deadJob = (account: string, leaseUntil: string) => `
  INSERT INTO scim_sync_jobs (id, account_id, status, created_at, started_at, lease_until)
  SELECT '00000000-0000-4000-8000-000000000000', id, 'running', $1, $1, '${leaseUntil}'
  FROM accounts WHERE name = '${account}'`

/** The rows of a query on the store of these settings. */
export async function rowsIn(store: StoreSettings, sql: string, values: readonly string[] = []) {
  await using opened = await openStore(store)
  return await opened.query(sql, values)
}

/** Receives the notices of a service. */
export async function startHook() {
  const received: unknown[] = []
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    received.push(await json(request))
    response.end()
  }
  const server = await listen(createServer((request, response) => void take(request, response)))
  return { ...server, received, environment: { NOTICE_WEBHOOK: `http://127.0.0.1:${server.port}` } }
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
    return { response, job: one(jobSchema).parse(await response.json()).data }
  }
  const job = async (id: string) => one(jobSchema).parse(await read(`/scim/sync-jobs/${id}`)).data
  const end = (id: string) =>
    until(async () => {
      const seen = await job(id)
      return seen.finished_at !== null && seen
    })
  const groups = async (query = '?limit=100') => page(groupSchema).parse(await read(`/scim/groups${query}`))
  const members = async (id: string) =>
    page(memberSchema).parse(await read(`/scim/groups/${id}/members?limit=100`))
  return {
    key,
    post,
    job,
    end,
    /** Starts a job and waits for its end. */
    sync: async () => await end((await post()).job.id),
    changes: async (id: string) => one(changesSchema).parse(await read(`/scim/sync-jobs/${id}/changes`)).data,
    jobs: async (query = '') => page(jobSchema).parse(await read(`/scim/sync-jobs${query}`)),
    groups,
    members,
    /** Names of the groups and of their members' ids, sorted: `{ Staff: ['ann', 'bob'] }`. */
    async all() {
      const entries = (await groups()).data.map(async ({ id, display_name }) => {
        const { data, total_count } = await members(id)
        // The stores sort texts differently.
        return [display_name, total_count === null ? null : data.map((member) => member.id).toSorted()]
      })
      return Object.fromEntries(await Promise.all(entries))
    },
  }
}

type MemberMode = ConnectionSettings['members']

export type DirectoryCase = {
  readonly groups?: DirectoryGroup[]
  readonly quirk?: Quirk
  readonly members?: MemberMode
  /** The groups after the sync, or the cause of its failure. */
  readonly ends: number | Failure
  /** The members of the group "odd". */
  readonly odd?: readonly string[] | null
  readonly warning?: string | undefined
}

/** A list of groups with these replies, or always this one, and how the sync ends. */
export const list = (reply: Quirk | Reply, ends: DirectoryCase['ends'], warning?: string): DirectoryCase => ({
  quirk: ofList(typeof reply === 'function' ? reply : () => reply),
  ends,
  warning,
})

/** Connects directories, each with a new account, to one service for the tests of a file. */
export function useAccounts(options: SyncApiOptions = {}) {
  let service: Awaited<ReturnType<typeof startSyncApi>>
  let accounts = 0

  beforeAll(async () => {
    service = await startSyncApi({ DATA_DIR: makeFolder() }, options)
  })

  return async (url: string, members: MemberMode = 'inline') => {
    accounts += 1
    return await service.connect(url, { account: `account-${accounts}`, members })
  }
}

/** Makes a test per case, by name. */
export function describeDirectories(
  connect: ReturnType<typeof useAccounts>,
  cases: Readonly<Record<string, DirectoryCase>>,
): void {
  describe.each(Object.entries(cases))(
    'a directory with this: %s',
    (_name, { groups = [], quirk, members = 'inline', ends, odd, warning }) => {
      it(`ends as ${ends}`, async () => {
        await using directory = await startDirectory(groups, quirk === undefined ? {} : { quirk })
        const account = await connect(directory.url, members)
        const [count, outcome] =
          typeof ends === 'number'
            ? [ends, { synced_groups: ends, deleted_groups: 0 }]
            : [0, { error_message: FAILURES[ends], deleted_groups: null }]
        const job = await account.sync()
        expect(job).toMatchObject(outcome)
        const { data, total_count } = await account.groups()
        expect(total_count).toBe(count)
        const group = data.find(({ external_id }) => external_id === 'odd')
        if (odd !== undefined) {
          const found = await account.members(group?.id ?? '')
          expect(found.total_count === null ? null : found.data.map(({ id }) => id)).toEqual(odd)
        }
        const { warnings } = await account.changes(job.id)
        expect(warnings).toEqual(warning === undefined ? [] : [expect.stringContaining(warning)])
      })
    },
  )
}
