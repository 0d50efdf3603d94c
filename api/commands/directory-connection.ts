/** Combines an existing connection with the changes of `set`. */
import { OperatorError } from '../http/errors.ts'
import { AddressRefused, checkLiteralAddress, isWithinReach } from '../scim/directory/http/addresses.ts'
import type { Connection, ConnectionWanted } from '../scim/directory/connection-store.ts'
import { DEFAULT_GATE } from '../scim/directory/connection-options.ts'
import type { ConnectionChanges } from './directory-options.ts'

type Kept = Pick<Connection, 'members' | 'reach' | 'gate' | 'schedule' | 'nextSyncAt'>

const NEW: Kept = {
  members: 'inline',
  reach: { allowLoopback: false, allowPrivate: false },
  gate: DEFAULT_GATE,
  schedule: null,
  nextSyncAt: null,
}

/**
 * The connection with the changes.
 * @throws {OperatorError} if something is missing, or if no sync could reach the address.
 */
export function changeConnection(
  former: Connection | undefined,
  { url = former?.url, token = former?.token, ...changes }: ConnectionChanges,
): ConnectionWanted {
  if (url === undefined) {
    throw new OperatorError('The address is missing: use --url https://HOST/PATH, without /Groups')
  }
  if (token === undefined) {
    throw new OperatorError('The token is missing: use either --token-env VARIABLE or --token-file PATH')
  }
  const kept = former ?? NEW
  const { members = kept.members, allowLoopback = kept.reach.allowLoopback } = changes
  const reach = { allowLoopback, allowPrivate: changes.allowPrivate ?? kept.reach.allowPrivate }
  refuseUnreachable(url, reach)
  return { url, token, members, reach, gate: { ...kept.gate, ...changes.gate }, ...scheduleOf(kept, changes) }
}

function scheduleOf(
  kept: Kept,
  { schedule }: Pick<ConnectionChanges, 'schedule'>,
): Pick<ConnectionWanted, 'schedule' | 'nextSyncAt'> {
  if (schedule === null) return { schedule: null, nextSyncAt: null }
  if (schedule !== undefined)
    return { schedule: schedule.expression, nextSyncAt: schedule.first.toISOString() }
  return { schedule: kept.schedule, nextSyncAt: kept.nextSyncAt }
}

const LOCAL_NAME = /^(?:.+\.)?localhost\.?$/

// Rejects an address that every sync would reject, while the operator is present.
function refuseUnreachable(url: URL, reach: Connection['reach']): void {
  if (url.protocol === 'http:' && !reach.allowLoopback) {
    throw new OperatorError(
      'The address begins with http://: use --url https://…, or http://… to this machine with --allow-loopback',
    )
  }
  try {
    checkLiteralAddress(url, reach)
  } catch (error) {
    if (!(error instanceof AddressRefused)) throw error
    throw unreachable(url)
  }
  // This name is always this machine (RFC 6761, 6.3).
  if (LOCAL_NAME.test(url.hostname) && !isWithinReach('127.0.0.1', url.protocol, reach))
    throw unreachable(url)
}

function unreachable({ hostname }: URL): OperatorError {
  return new OperatorError(
    `No sync may connect to ${hostname}: use another --url, or --allow-private for an address of a private network, ` +
      'or --allow-loopback for one of this machine; link-local and reserved addresses are never allowed',
  )
}
