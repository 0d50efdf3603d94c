/** The commands of `npm run directories`. Data goes to `print`, messages to `note`. */
import type { Command, Work } from '../../pipeline/program/program.ts'
import type { Clock } from '../http/call.ts'
import type { Settings } from '../config.ts'
import { OperatorError } from '../http/errors.ts'
import type { Log } from '../process/log.ts'
import type { Store } from '../store/store.ts'
import {
  findConnectionByName,
  listConnections,
  putConnection,
  removeConnection,
  type Connection,
  type ConnectionWanted,
} from '../scim/directory/connection-store.ts'
import { changeConnection } from './directory-connection.ts'
import { readAccount, readChanges, readOptions, SET_OPTIONS } from './directory-options.ts'
import { FAILURES, SyncFailure } from '../scim/failures.ts'
import { eraseHiddenGroups } from '../scim/groups/erase.ts'
import { lastJob, showJob } from '../scim/jobs/job-store.ts'
import { SYNC_LIMITS } from '../scim/directory/limits.ts'
import { examine } from '../scim/directory/examine.ts'
import { UNOBSERVED, type SyncObserver } from '../scim/observer.ts'
import { describePlan } from '../scim/sync/plan-text.ts'
import { runInProcess } from '../scim/jobs/run-in-process.ts'
import { HEARTBEAT } from '../scim/jobs/run-job.ts'
import { prepareSync, type SyncDependencies, type SyncOptions } from '../scim/sync/sync.ts'
import { syncNow } from '../scim/jobs/sync-now.ts'
import { readToken, type Environment } from '../scim/directory/token.ts'

interface Dependencies {
  readonly store: Store
  readonly settings: Settings
  readonly environment: Environment
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly log: Log
  readonly print: (line: string) => void
  readonly note: (line: string) => void
}

type DirectoryCommand = Command<Dependencies>

const USAGE = {
  set:
    'set --account NAME --url URL (--token-env VARIABLE | --token-file PATH) [--members inline|per_group|off] ' +
    '[--schedule CRON|off] [--gate-groups N] [--gate-members N] [--gate-percent N] [--[no-]allow-private] ' +
    '[--[no-]allow-loopback]',
  list: 'list',
  remove: 'remove --account NAME',
  test: 'test --account NAME',
  sync: 'sync --account NAME [--dry-run] [--allow-deletions]',
  erase: 'erase --account NAME',
} as const

// A line per page would be too much for a large directory.
const REPORT_EVERY = 1000

export const COMMANDS: Readonly<Record<string, DirectoryCommand>> = {
  set: {
    usage: USAGE.set,
    summary: 'connects the account to its directory, or changes the given options of its connection',
    prepare: prepareSet,
  },
  list: {
    usage: USAGE.list,
    summary: 'lists the connections, tab-separated, with their last sync, without tokens',
    prepare: prepareList,
  },
  remove: {
    usage: USAGE.remove,
    summary: 'removes the connection; the groups stay as last synced',
    prepare: prepareRemove,
  },
  test: {
    usage: USAGE.test,
    summary: 'requests the first groups and reports what the directory supports; writes nothing',
    prepare: prepareTest,
  },
  sync: {
    usage: USAGE.sync,
    summary:
      'syncs now and prints the job; --dry-run prints what would change and writes nothing; --allow-deletions ' +
      'lets this run delete everything that the directory lacks',
    prepare: prepareSyncCommand,
  },
  erase: {
    usage: USAGE.erase,
    summary:
      'erases deleted groups, and all groups once the connection is removed: their names, members ' +
      'and ids; a group that comes back is a new one',
    prepare: prepareErase,
  },
}

function prepareSet(args: readonly string[]): (dependencies: Dependencies) => Promise<void> {
  const given = readOptions(args, SET_OPTIONS, USAGE.set)
  const account = readAccount(given, USAGE.set)
  const changes = readChanges(given, new Date())
  return async ({ store, environment, clock, note }) => {
    const connection = changeConnection(await findConnectionByName(store, account), changes)
    if (!(await putConnection(store, account, connection, clock()))) {
      throw new OperatorError(
        `There is no account "${account}": npm run -s keys -- create --account … --kind management creates it, with a key`,
      )
    }
    note(`Connected account "${account}" to ${connection.url.href}. ${describeConnection(connection)}`)
    try {
      readToken(connection.token, environment)
    } catch (error) {
      if (!(error instanceof SyncFailure)) throw error
      note(`The token cannot be read here, but the service needs it. ${error.message}.`)
    }
  }
}

function describeConnection({ members, schedule, gate, reach }: ConnectionWanted): string {
  return [
    `Members: ${members}.`,
    `Schedule: ${schedule ?? 'none'}.`,
    `Deletion gate: ${gate.groups} groups, ${gate.members} members, ${gate.percent} %.`,
    ...(reach.allowPrivate ? ['Private addresses are allowed.'] : []),
    ...(reach.allowLoopback ? ['Addresses of this machine are allowed.'] : []),
  ].join(' ')
}

function prepareErase(args: readonly string[]): (dependencies: Dependencies) => Promise<void> {
  const account = readAccount(readOptions(args, ['account'], USAGE.erase), USAGE.erase)
  return async ({ store, clock, note }) => {
    const { groups, members } = await eraseHiddenGroups(store, account, clock())
    note(`Erased ${groups} groups and ${members} memberships of account "${account}".`)
  }
}

function prepareList(args: readonly string[]): Work<Dependencies> {
  readOptions(args, [], USAGE.list)
  return async ({ store, print }) => {
    print('account\turl\ttoken\tmembers\tschedule\tnext_sync_at\tlast_status\tlast_finished_at')
    for (const connection of await listConnections(store)) {
      const { account, url, token, members, schedule, nextSyncAt, accountId } = connection
      const last = await lastJob(store, accountId)
      const columns = [account, url.href, `${token.kind}:${token.source}`, members, schedule, nextSyncAt]
      print([...columns, last?.status, last?.finished_at].map((column) => column ?? '').join('\t'))
    }
  }
}

function prepareRemove(args: readonly string[]): Work<Dependencies> {
  const account = readAccount(readOptions(args, ['account'], USAGE.remove), USAGE.remove)
  return async ({ store, note }) => {
    if (!(await removeConnection(store, account))) throw notConnected(account)
    note(`Removed the connection of account "${account}"; its groups stay as last synced.`)
  }
}

function prepareTest(args: readonly string[]): Work<Dependencies> {
  const account = readAccount(readOptions(args, ['account'], USAGE.test), USAGE.test)
  return async (dependencies) => {
    const connection = await connectionOf(dependencies.store, account)
    const lines = await examine(connection, dependencies.signal, effectsOf(dependencies))
    for (const line of lines) dependencies.print(line)
  }
}

function prepareSyncCommand(args: readonly string[]): Work<Dependencies> {
  const given = readOptions(args, ['account', 'dry-run', 'allow-deletions'], USAGE.sync)
  const account = readAccount(given, USAGE.sync)
  const allowDeletions = given['allow-deletions'] ?? false
  return async (dependencies) => {
    const { accountId } = await connectionOf(dependencies.store, account)
    const options = {
      signal: dependencies.signal,
      allowDeletions,
      progress: reportProgress(dependencies.note),
    }
    if (given['dry-run'] === true) await showPlan(accountId, options, dependencies)
    else await runSync(accountId, options, dependencies)
  }
}

async function showPlan(accountId: string, options: SyncOptions, dependencies: Dependencies): Promise<void> {
  const { store, print, note } = dependencies
  const prepared = await prepareSync(store, accountId, options, effectsOf(dependencies))
  for (const line of describePlan(prepared.plan, prepared.removals)) print(line)
  for (const warning of prepared.warnings) note(`${warning}.`)
  if (!prepared.complete) note('The list is not provably complete: a sync deletes nothing.')
  if (prepared.fault === undefined) return
  note(`A sync would stop here. ${FAILURES[prepared.fault.failure]} (${prepared.fault.message})`)
  note('To allow it for one run: sync --allow-deletions.')
}

async function runSync(accountId: string, options: SyncOptions, dependencies: Dependencies): Promise<void> {
  const { settings, print } = dependencies
  const syncMs = settings.SCIM_SYNC_MINUTES * 60_000
  const job = await syncNow(accountId, options, {
    ...dependencies,
    ...effectsOf(dependencies),
    heartbeat: HEARTBEAT,
    runSync: runInProcess,
    syncMs,
  })
  print(JSON.stringify(showJob(job)))
  if (job.failure !== null) throw new SyncFailure(job.failure, `job ${job.id}`)
}

function effectsOf({ environment, note }: Dependencies): SyncDependencies {
  let reported = false
  const requestFinished: SyncObserver['requestFinished'] = (outcome) => {
    // Once: a directory may limit many requests of one command.
    if (outcome !== 'slow_down' || reported) return
    reported = true
    note('The directory limits requests (slow down): the sync waits as long as it demands.')
  }
  return { environment, limits: SYNC_LIMITS, observer: { ...UNOBSERVED, requestFinished } }
}

async function connectionOf(store: Store, account: string): Promise<Connection> {
  const connection = await findConnectionByName(store, account)
  if (connection === undefined) throw notConnected(account)
  return connection
}

function notConnected(account: string): OperatorError {
  return new OperatorError(
    `Account "${account}" has no directory: list shows the connections, set creates one`,
  )
}

function reportProgress(note: (line: string) => void): SyncOptions['progress'] {
  let reported = 0
  return (read, total) => {
    if (read === reported || (read < reported + REPORT_EVERY && read !== total)) return
    reported = read
    note(`Read ${read} groups${total === undefined ? '' : ` of ${total}`}.`)
  }
}
