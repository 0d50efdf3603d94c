/** The store for requests: they get a 503 if it fails or is slow, however long other users wait for it. */
import { ApiError } from '../http/errors.ts'
import type { Log } from '../process/log.ts'
import type { Queries } from './store.ts'

const WAIT_MS = 2000
const RETRY_AFTER_SECONDS = 2

export type RequestStore = Pick<Queries, 'query'>

/** Queries `store`; a failure is logged once until the store answers again. */
export function createRequestStore(store: RequestStore, log: Log): RequestStore {
  let isFailing = false
  return {
    async query(sql, values) {
      try {
        const rows = await withinWait(store.query(sql, values))
        if (isFailing) log.info('the store answers again')
        isFailing = false
        return rows
      } catch (error) {
        if (!isFailing) log.error({ err: error }, 'the store does not answer; requests that need it get 503')
        isFailing = true
        throw new ApiError(
          503,
          `Keys and limits are temporarily unavailable; try again in ${RETRY_AFTER_SECONDS} seconds`,
          { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } },
        )
      }
    },
  }
}

// A setTimeout, since aborting timers/promises costs more than the query.
async function withinWait<Result>(pending: Promise<Result>): Promise<Result> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`The store has not answered for ${WAIT_MS} ms`)), WAIT_MS)
  try {
    return await Promise.race([pending, tooLate])
  } finally {
    clearTimeout(timer)
  }
}
