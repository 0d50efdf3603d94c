/** Pulls groups from a directory with a test's faults, without a store. */
import { createDirectoryClient } from '../../../api/scim/directory/http/client.ts'
import { SyncFailure } from '../../../api/scim/failures.ts'
import { SYNC_LIMITS, type SyncLimits } from '../../../api/scim/directory/limits.ts'
import type { MemberMode } from '../../../api/scim/directory/connection-options.ts'
import { pull } from '../../../api/scim/directory/pull.ts'
import { DIRECTORY_TOKEN, type DirectoryGroup, type Quirk, type startDirectory } from './faulty-directory.ts'

interface PullOptions {
  readonly members?: MemberMode
  readonly limits?: Partial<SyncLimits>
  /** Groups; members may be undefined if they were not read. */
  readonly mayMiss?: number
}

type Directory = Awaited<ReturnType<typeof startDirectory>>

/** Pulls from a directory, and looks up absent groups if there are any. */
export async function pullFrom(
  { url }: Directory,
  { members = 'inline', limits = {}, mayMiss = 5 }: PullOptions = {},
  absent?: string[],
) {
  const all = { ...SYNC_LIMITS, pageSize: 10, ...limits }
  const client = createDirectoryClient({
    url: new URL(url),
    token: DIRECTORY_TOKEN,
    reach: { allowLoopback: true, allowPrivate: false },
    limits: all,
    signal: new AbortController().signal,
    wait: async () => undefined,
  })
  try {
    const pulled = await pull({
      client,
      limits: all,
      members,
      progress: () => undefined,
      mayMiss: (missing) => missing <= mayMiss,
    })
    const confirmed = absent === undefined ? undefined : await pulled.confirmAbsent(absent)
    const ids = pulled.groups.ids().toSorted((a, b) => Number(a) - Number(b))
    return { ...pulled, ids, confirmed, warnings: pulled.warnings.lines() }
  } finally {
    await client.close()
  }
}

/** The error of a pull that must fail. */
export async function failureOf(directory: Directory, options?: PullOptions): Promise<string> {
  const error = await pullFrom(directory, options).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof SyncFailure)) throw new Error(`No SyncFailure, but ${String(error)}`)
  return error.failure
}

/** The ids of the groups, in their order. */
export function idsOf(groups: readonly DirectoryGroup[]): string[] {
  return groups.map((group) => group.id)
}

/** The queries of the requests for the list of groups. */
export function listQueries({ asked }: Directory): URLSearchParams[] {
  return asked.filter(({ path }) => path === '/Groups').map(({ query }) => query)
}

/** A quirk of the list of groups only. */
export function ofList(quirk: Quirk): Quirk {
  return (asked) => (asked.path === '/Groups' ? quirk(asked) : undefined)
}
