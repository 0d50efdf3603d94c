/** Attribution of requests to apps (CONTRACT 6): known apps from memory, new ones registered in the store. */
import { UNATTRIBUTED_APP_ID, utcDay } from '../../../pipeline/contract.ts'
import type { Clock } from '../../call.ts'
import type { Log } from '../../log.ts'
import { createMemo } from '../../memo.ts'
import type { Store } from '../../store/store.ts'
import { appHeaders, readAppClaim, type AppClaim, type RequestHeaders } from './app-claim.ts'
import {
  addsTo,
  findApp,
  MAX_NEW_APPS_PER_DAY,
  settleApp,
  type App,
  type NewAppVisibility,
} from './app-store.ts'
import { openRegistryFile } from './registry-file.ts'

export interface Attribution {
  /**
   * The app a request belongs to by its headers, once it is known whether a provider served it. Only a request that was
   * served registers an app that is new, or adds to one: what is refused costs nobody anything, and would fill the
   * dataset with names. Never rejects: a request whose app cannot be settled is attributed to none, and the log says why.
   */
  readonly attribute: (headers: RequestHeaders, isServed: boolean) => Promise<number>
  /** Writes the registry of new apps to its end. */
  close(): Promise<void>
}

interface AttributionOptions {
  readonly dataDir: string
  readonly store: Store
  /** Whether new apps are published. */
  readonly visibility: NewAppVisibility
  readonly clock: Clock
  readonly log: Log
}

/** Apps kept in memory: a few hundred bytes each. */
const CACHED_APPS = 10_000

/** Claims kept in memory, by the headers that make them: a thousand bytes each at most. */
const CACHED_CLAIMS = 1000

/**
 * Opens the attribution over a store and the registry file under `dataDir`.
 * @throws {OperatorError} when the registry file was damaged.
 */
export async function openAttribution(options: AttributionOptions): Promise<Attribution> {
  const { dataDir, store, log } = options
  const file = await openRegistryFile(dataDir, store, log)
  const settle = createSettler(options)
  const known = new Map<string, App>()
  const claims = createMemo<AppClaim | undefined>(CACHED_CLAIMS)
  let failing = false

  async function settleSafely(claim: AppClaim, isServed: boolean): Promise<App | undefined> {
    try {
      const app = await settle(claim, isServed)
      // One that was found may have been registered a moment ago, by another request or process.
      if (app !== undefined) await file.changed()
      if (failing) log.info('apps are settled again')
      failing = false
      return app
    } catch (error) {
      if (!failing) log.error({ err: error }, 'apps cannot be settled; requests of new ones are unattributed')
      failing = true
      return known.get(claim.identity)
    }
  }

  return {
    async attribute(headers, isServed) {
      const telling = appHeaders(headers)
      const claim = claims(JSON.stringify(telling), () => readAppClaim(telling))
      if (claim === undefined) return UNATTRIBUTED_APP_ID
      const cached = known.get(claim.identity)
      const isSettled = cached !== undefined && !(isServed && addsTo(cached, claim))
      const app = isSettled ? cached : await settleSafely(claim, isServed)
      if (app === undefined) return UNATTRIBUTED_APP_ID
      remember(known, app)
      return app.app_id
    },
    close: () => file.close(),
  }
}

/**
 * Finds the app of a claim in the store, and for a request that was served registers it, or keeps what the claim adds;
 * undefined where it is not known, or the day has no room for another.
 */
function createSettler({ store, visibility, clock, log }: AttributionOptions) {
  let fullDay: string | undefined
  return async (claim: AppClaim, isServed: boolean): Promise<App | undefined> => {
    const now = clock()
    const found = await findApp(store, claim.identity)
    if (!isServed || (found !== undefined && !addsTo(found, claim))) return found
    // A full day needs no transaction to be full.
    if (found === undefined && fullDay === utcDay(now)) return undefined
    const app = await settleApp(store, claim, { visibility, now })
    if (app === undefined) {
      fullDay = utcDay(now)
      log.warn({ limit: MAX_NEW_APPS_PER_DAY }, 'too many new apps today; further ones stay unattributed')
    }
    return app
  }
}

/** Keeps the apps that were asked for last. */
function remember(known: Map<string, App>, app: App): void {
  known.delete(app.identity)
  known.set(app.identity, app)
  const [oldest] = known.keys()
  if (known.size > CACHED_APPS && oldest !== undefined) known.delete(oldest)
}
