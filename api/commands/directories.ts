/** Entry point of `npm run directories`: connects accounts to their SCIM directories (CONTRACT 9). */
import '../../pipeline/program/runtime.js'
import type { ParseArgsOptionsConfig } from 'node:util'
import {
  parseCommandLine,
  ProgramError,
  runAsProcess,
  runCommandLine,
  type Command,
  type CommandLine,
  type Work,
} from '../../pipeline/program/program.ts'
import { readSettings, type Settings } from '../config.ts'
import { OperatorError } from '../http/errors.ts'
import { onStopSignal } from '../process/entry.ts'
import { createLog } from '../process/log.ts'
import { SYNC_LIMITS } from '../scim/client.ts'
import {
  eraseDirectory,
  findConnectionByName,
  listConnections,
  putConnection,
  removeConnection,
  type Connection,
} from '../scim/connections.ts'
import { FAILURES, SyncFailure } from '../scim/failures.ts'
import { listGroups } from '../scim/groups.ts'
import { listJobs, showJob } from '../scim/job-store.ts'
import { LEASE_MS, syncNow, type JobDependencies } from '../scim/jobs.ts'
import { examine } from '../scim/read.ts'
import { prepareSync, type SyncOptions } from '../scim/sync.ts'
import { readSecret } from '../scim/token.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { combineSettings, readSettings as readOptions, SET_OPTIONS } from './directory-options.ts'

/** What a command needs: the open store, the output, and the stop signal. */
interface Dependencies extends Pick<CommandLine, 'print' | 'note' | 'environment'> {
  readonly store: Store
  readonly settings: Settings
  readonly signal: AbortSignal
}

// A line per page would be too much for a large directory.
const REPORT_EVERY = 1000

const COMMANDS: Readonly<Record<string, Command<Dependencies>>> = {
  set: forAccount(
    'set --account NAME --url URL (--token-env VARIABLE | --token-file PATH | --token-url URL --client-id ID ' +
      '(--client-secret-env VARIABLE | --client-secret-file PATH)) [--members inline|per_group|off] ' +
      '[--schedule CRON|off] [--gate-groups N] [--gate-members N] [--gate-percent N] [--[no-]allow-private] ' +
      '[--[no-]allow-loopback]',
    'connects the account to its directory, or changes the given options of its connection',
    (account, values) => {
      const given = readOptions(values)
      return async (dependencies) => await connect(account, given, dependencies)
    },
    SET_OPTIONS,
  ),
  list: {
    usage: 'list',
    summary: 'lists the connections, tab-separated, with their last sync, without tokens',
    prepare(args) {
      parseCommandLine({ args, options: {} }, 'list --help')
      return list
    },
  },
  remove: forAccount(
    'remove --account NAME',
    'removes the connection; the groups stay as last synced',
    (account) =>
      async ({ store, note }) => {
        if (!(await removeConnection(store, account))) throw notConnected(account)
        note(`Removed the connection of account "${account}"; its groups stay as last synced.`)
      },
  ),
  test: forAccount(
    'test --account NAME',
    'requests the first groups and reports what the directory supports; writes nothing',
    (account) => async (dependencies) => {
      const connection = await connectionOf(dependencies.store, account)
      const lines = await examine(connection, dependencies.signal, jobDependencies(dependencies))
      for (const line of lines) dependencies.print(line)
    },
  ),
  sync: forAccount(
    'sync --account NAME [--dry-run] [--allow-deletions]',
    'syncs now and prints the job; --dry-run prints what would change and writes nothing; --allow-deletions ' +
      'lets this run delete everything that the directory lacks',
    (account, values) => async (dependencies) => {
      const { account_id } = await connectionOf(dependencies.store, account)
      const allowDeletions = values['allow-deletions'] === true
      const options = {
        signal: dependencies.signal,
        allowDeletions,
        progress: reportProgress(dependencies.note),
      }
      await (values['dry-run'] === true ? showPlan : runSync)(account_id, options, dependencies)
    },
    { 'dry-run': { type: 'boolean' }, 'allow-deletions': { type: 'boolean' } },
  ),
  erase: forAccount(
    'erase --account NAME',
    'removes the connection, and erases all groups of the account: their names, members and ids',
    (account) =>
      async ({ store, note }) => {
        const { groups, members } = await eraseDirectory(store, account)
        note(`Erased the connection, ${groups} groups and ${members} memberships of account "${account}".`)
      },
  ),
}

const PROGRAM = {
  call: 'npm run -s directories',
  summary:
    'Connects accounts to their SCIM directories. Tokens are read from the environment of the service, or from a ' +
    'file with mode 0600, at each sync. Data goes to stdout, messages to stderr.',
  commands: COMMANDS,
  notes: `The connections are in the folder DATA_DIR (default: data), or in the database of DATABASE_URL.

Exit codes: 0 done, 1 the sync or the test failed, 2 wrong usage or a crash`,
}

/** A failed sync or test. */
class FailedSync extends ProgramError {
  readonly exitCode = 1
}

/** Runs a command until `onStop` calls back; resolves to the exit code. */
export function directories(line: CommandLine, onStop = onStopSignal): Promise<number> {
  return runCommandLine(PROGRAM, line, async (work) => {
    const settings = readSettings(line.environment)
    const store = await openStore(settings, new Date())
    const stopping = new AbortController()
    onStop(() => stopping.abort(new SyncFailure('interrupted', 'Interrupted')))
    try {
      await work({ ...line, store, settings, signal: stopping.signal })
    } catch (error) {
      if (!(error instanceof SyncFailure)) throw error
      throw new FailedSync(`${FAILURES[error.failure]} (${error.message})`, { cause: error })
    } finally {
      await store.close()
    }
  })
}

type Values = Readonly<Record<string, unknown>>

/** A command for one account; `prepare` checks the values of its options. */
function forAccount(
  usage: string,
  summary: string,
  prepare: (account: string, values: Values) => Work<Dependencies>,
  more: ParseArgsOptionsConfig = {},
): Command<Dependencies> {
  return {
    usage,
    summary,
    prepare(args) {
      const [short = ''] = /^\S+ --account NAME/.exec(usage) ?? []
      const config = { args, options: { account: { type: 'string' }, ...more }, allowNegative: true } as const
      const values: Values = parseCommandLine(config, short).values
      const { account } = values
      if (typeof account === 'string' && account !== '') return prepare(account, values)
      throw new OperatorError(`The account is missing: ${short}`)
    },
  }
}

async function connect(
  account: string,
  given: ReturnType<typeof readOptions>,
  { store, environment, note }: Dependencies,
): Promise<void> {
  const former = await findConnectionByName(store, account)
  const connection = combineSettings(given, former)
  if (!(await putConnection(store, account, connection, new Date()))) {
    throw new OperatorError(
      `There is no account "${account}": npm run -s keys -- create --account … --kind management creates it, with a key`,
    )
  }
  const { url, members, schedule, gate_groups, gate_members, gate_percent } = connection
  note(
    `Connected account "${account}" to ${url}. Members: ${members}. Schedule: ${schedule ?? 'none'}. ` +
      `Deletion gate: ${gate_groups} groups, ${gate_members} members, ${gate_percent} %.`,
  )
  if (former !== undefined && new URL(former.url).origin !== new URL(url).origin) {
    const { total_count } = await listGroups(store, former.account_id, { limit: 1, offset: 0 })
    if (total_count > 0) note(ANOTHER_ORIGIN(total_count))
  }
  try {
    readSecret(connection, environment)
  } catch (error) {
    if (!(error instanceof SyncFailure)) throw error
    note(`The token cannot be read here, but the service needs it. ${error.message}.`)
  }
}

const ANOTHER_ORIGIN = (groups: number) =>
  `Warning: this is another server, but ${groups} groups of the former one are stored. A group there with the same id ` +
  '(small numbers, for example) takes the place of the stored one: check sync --dry-run, or erase first.'

const COLUMNS = 'account url token members schedule next_sync_at last_status last_finished_at last_error'

async function list({ store, print }: Dependencies): Promise<void> {
  print(COLUMNS.replaceAll(' ', '\t'))
  for (const connection of await listConnections(store)) {
    const { account, account_id, url, token_kind, token_source, members, schedule, next_sync_at } = connection
    const [last] = (await listJobs(store, account_id, { limit: 1, offset: 0 })).data
    const columns = [account, url, `${token_kind}:${token_source}`, members, schedule, next_sync_at]
    columns.push(last?.status ?? null, last?.finished_at ?? null, last?.error_message ?? null)
    print(columns.map((column) => column ?? '').join('\t'))
  }
}

async function showPlan(accountId: string, options: SyncOptions, dependencies: Dependencies): Promise<void> {
  const { print, note } = dependencies
  const { report, fault } = await prepareSync(accountId, options, jobDependencies(dependencies))
  print(JSON.stringify(report, undefined, 2))
  if (fault === undefined) return
  note(`A sync would stop here. ${FAILURES[fault.failure]} (${fault.message})`)
  note('To allow it for one run: sync --allow-deletions.')
}

async function runSync(accountId: string, options: SyncOptions, dependencies: Dependencies): Promise<void> {
  const { note, print } = dependencies
  const job = await syncNow(accountId, options, { ...jobDependencies(dependencies), note })
  print(JSON.stringify(showJob(job)))
  if (job.failure !== null) throw new SyncFailure(job.failure, `job ${job.id}`)
}

function jobDependencies({ store, settings, environment }: Dependencies): JobDependencies {
  return {
    store,
    environment,
    clock: () => new Date(),
    log: createLog(settings.LOG_LEVEL),
    limits: SYNC_LIMITS,
    leaseMs: LEASE_MS,
    syncMs: settings.SCIM_SYNC_MINUTES * 60_000,
  }
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

if (import.meta.main) await runAsProcess((line) => directories(line))
