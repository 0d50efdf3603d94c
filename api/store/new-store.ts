/** Detects a new store beside older snapshots: after the loss of a machine, or with a wrong DATABASE_URL. */
import { z } from 'zod'
import { asOfFromId } from '../../pipeline/contract/calendar.ts'
import type { Log } from '../process/log.ts'
import type { Store } from './store.ts'

const countRow = z.tuple([z.object({ accounts: z.coerce.number() })])

/** Identifiers have whole seconds. */
const PRECISION_MS = 1000

/**
 * Warns of a store without accounts if a snapshot is older than this process.
 * @param ids of the retained snapshots.
 */
export async function warnOfNewStore(store: Store, ids: readonly string[], log: Log): Promise<void> {
  if (!ids.some(isOlder)) return
  const [{ accounts }] = countRow.parse(await store.query('SELECT count(*) AS accounts FROM accounts'))
  if (accounts > 0) return
  log.warn(
    'the store has no account, but there are older snapshots. If there were keys, restore service.sqlite or ' +
      'correct DATABASE_URL; otherwise create one: npm run keys -- create --account NAME --kind inference',
  )
}

function isOlder(id: string): boolean {
  const asOf = asOfFromId(id)
  return asOf !== undefined && asOf.getTime() < performance.timeOrigin - PRECISION_MS
}
