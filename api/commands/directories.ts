/** Entry point of `npm run directories`: connects accounts to their SCIM directories (CONTRACT 9). */
import '../../pipeline/program/runtime.js'
import { z } from 'zod'
import { JSON_OPTION, flag, required } from '../../pipeline/program/options.ts'
import {
  UsageError,
  commandsOf,
  runAsProcess,
  runCommandLine,
  type CommandLine,
} from '../../pipeline/program/program.ts'
import { pluralize, printRows } from '../../pipeline/program/terminal.ts'
import { readSettings, type Settings } from '../config.ts'
import { createLog } from '../process/log.ts'
import { onStopSignal } from '../process/signals.ts'
import {
  findConnectionByName,
  listConnections,
  putConnection,
  removeConnection,
} from '../scim/connections.ts'
import { SyncFailure } from '../scim/failures.ts'
import { listGroups } from '../scim/groups.ts'
import { listJobs, showJob } from '../scim/job-store.ts'
import { eraseDirectory, syncDefaults, syncNow, type JobDependencies } from '../scim/jobs.ts'
import { prepareSync } from '../scim/sync.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { SET_OPTIONS, combineSettings, settingsIn } from './directory-options.ts'

/** What a command needs: the open store, the output, and the stop signal. */
type Dependencies = Pick<CommandLine, 'print' | 'note' | 'environment'> & {
  readonly store: Store
  readonly settings: Settings
  readonly signal: AbortSignal
}

const command = commandsOf<Dependencies>()
const FIRST = { limit: 1, offset: 0 }

const ACCOUNT = {
  account: required('NAME', 'the account of the directory', z.string('Expected NAME').min(1)),
}

const set = command({
  summary: 'connects the account to its directory, or changes the given options of its connection',
  options: { ...ACCOUNT, ...SET_OPTIONS },
  check: settingsIn,
  async work({ store, note }, { account, ...options }) {
    const former = await findConnectionByName(store, account)
    const connection = combineSettings(settingsIn(options), former)
    if (!(await putConnection(store, account, connection)))
      throw new UsageError(
        `There is no account "${account}": npm run -s keys -- create --account … --kind management creates it, with a key`,
      )
    const { url, members, schedule, gate_groups, gate_members, gate_percent } = connection
    note(
      `Connected account "${account}" to ${url}. Members: ${members}. Schedule: ${schedule ?? 'none'}. ` +
        `Deletion gate: ${gate_groups} groups, ${gate_members} members, ${gate_percent} %.`,
    )
    if (former?.url === url) return
    const { total_count } = await listGroups(store, (await connectionOf(store, account)).account_id, FIRST)
    if (total_count > 0) note(`Warning: ${total_count} ${OTHER_GROUPS}`)
  },
})

const OTHER_GROUPS =
  'groups are stored that may be of another address. A group of this one with the same id ' +
  '(small numbers, for example) takes the place of the stored one: check sync --dry-run, or erase first.'

const COLUMNS = 'account url token members schedule next_sync_at last_status last_finished_at last_error'

const list = command({
  summary: 'lists the connections with their last sync, without tokens',
  options: JSON_OPTION,
  async work({ store, print }, { json }) {
    const rows: unknown[][] = []
    for (const connection of await listConnections(store)) {
      const { account, url, token_kind, token_source, members, schedule, next_sync_at } = connection
      const [last] = (await listJobs(store, connection.account_id, FIRST)).data
      const columns = [account, url, `${token_kind}:${token_source}`, members, schedule, next_sync_at]
      rows.push([...columns, last?.status ?? null, last?.finished_at ?? null, last?.error_message ?? null])
    }
    printRows({ print, json }, COLUMNS.split(' '), rows)
  },
})

const remove = command({
  summary: 'removes the connection; the groups stay as last synced',
  options: ACCOUNT,
  async work({ store, note }, { account }) {
    await connectionOf(store, account)
    await removeConnection(store, account)
    note(`Removed the connection of account "${account}"; its groups stay as last synced.`)
  },
})

const test = command({
  summary: 'reads the directory as a sync would, and counts what it has; writes nothing',
  options: ACCOUNT,
  async work(dependencies, { account }) {
    const { groups, report } = await prepare(account, false, dependencies)
    const counts = [...groups.values()].map(({ members }) => members?.member_count ?? 0)
    const members = counts.reduce((sum, count) => sum + count, 0)
    const lines = [`groups: ${counts.length}`, `with members: ${counts.filter(Boolean).length}`]
    dependencies.print([...lines, `memberships: ${members}`, ...report.warnings].join('\n'))
  },
})

const sync = command({
  summary: 'syncs now and prints the job',
  options: {
    ...ACCOUNT,
    'dry-run': flag('prints what would change, and writes nothing'),
    'allow-deletions': flag('deletes all that the directory lacks, this time'),
  },
  async work(dependencies, { account, 'dry-run': isDry, 'allow-deletions': allowDeletions }) {
    const { store, signal, print } = dependencies
    if (isDry) return showPlan(await prepare(account, allowDeletions, dependencies), dependencies)
    const { account_id } = await connectionOf(store, account)
    const job = await syncNow(account_id, { signal, allowDeletions }, jobDependencies(dependencies))
    print(JSON.stringify(showJob(job)))
    if (job.failure !== null) throw new SyncFailure(job.failure, `job ${job.id}`)
  },
})

const erase = command({
  summary: 'removes the connection, and erases all groups of the account: their names, members and ids',
  options: ACCOUNT,
  async work(dependencies, { account }) {
    const { groups, members } = await eraseDirectory(account, jobDependencies(dependencies))
    const erased = `${pluralize(groups, 'group')} and ${pluralize(members, 'membership')}`
    dependencies.note(`Erased the connection, ${erased} of account "${account}".`)
  },
})

const PROGRAM = {
  call: 'npm run -s directories',
  summary:
    'Connects accounts to their SCIM directories. Tokens are read from the environment of the service, or from a ' +
    'file with mode 0600, at each sync. Data goes to stdout, messages to stderr.',
  commands: { set, list, remove, test, sync, erase },
  notes: `The connections are in the folder DATA_DIR (default: data), or in the database of DATABASE_URL.

Exit codes: 0 done, 1 the sync or the test failed, 2 wrong usage or a crash`,
}

/** Runs a command until `onStop` calls back; resolves to the exit code. */
export function directories(line: CommandLine, onStop = onStopSignal): Promise<number> {
  return runCommandLine(PROGRAM, line, async (work) => {
    const settings = readSettings(line.environment)
    await using store = await openStore(settings, { mustExist: true })
    const stopping = new AbortController()
    onStop(() => stopping.abort(new SyncFailure('interrupted', 'Interrupted')))
    await work({ ...line, store, settings, signal: stopping.signal })
  })
}

/** Reads the directory of the account, and plans the changes of a sync; writes nothing. */
async function prepare(account: string, allowDeletions: boolean, dependencies: Dependencies) {
  const { store, signal } = dependencies
  const { account_id } = await connectionOf(store, account)
  return await prepareSync(account_id, { signal, allowDeletions }, jobDependencies(dependencies))
}

/** Prints the changes of a sync that was not made: a line per kind with its number, and the names below. */
function showPlan({ report, fault }: Awaited<ReturnType<typeof prepare>>, { print, note }: Dependencies) {
  const { warnings, ...parts } = report
  for (const [kind, { count, names }] of Object.entries(parts)) {
    print([`${kind.replace('_', ' ')}: ${count}`, ...names].join('\n  '))
  }
  for (const warning of warnings) print(`warning: ${warning}`)
  if (fault === undefined) return
  note(`A sync would stop here. ${fault.message}\nTo allow it for one run: sync --allow-deletions.`)
}

function jobDependencies({ store, settings, environment }: Dependencies): JobDependencies {
  return {
    store,
    environment,
    clock: () => new Date(),
    log: createLog(settings.LOG_LEVEL),
    ...syncDefaults(settings.SCIM_SYNC_MINUTES),
    webhook: settings.NOTICE_WEBHOOK,
  }
}

async function connectionOf(store: Store, account: string) {
  const connection = await findConnectionByName(store, account)
  if (connection !== undefined) return connection
  throw new UsageError(`Account "${account}" has no directory: list shows the connections, set creates one`)
}

if (import.meta.main) await runAsProcess((line) => directories(line))
