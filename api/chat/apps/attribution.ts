/** Attributes requests to apps (CONTRACT 6): known apps come from memory, new ones are registered in the store. */
import { LRUCache } from 'lru-cache'
import { NAMED, type NewAppVisibility } from '../../../pipeline/contract/app-identity.ts'
import { utcDay } from '../../../pipeline/contract/calendar.ts'
import { UNATTRIBUTED_APP_ID } from '../../../pipeline/contract/dataset.ts'
import type { Clock } from '../../http/call.ts'
import type { Log } from '../../process/log.ts'
import type { Store } from '../../store/store.ts'
import { appHeaders, readAppClaim, type AppClaim, type RequestHeaders } from './app-claim.ts'
import { addsTo, findApp, MAX_NEW_APPS_PER_DAY, ensureApp, type App } from './app-store.ts'
import { openRegistryFile } from './registry-file.ts'

export interface Attribution {
  /**
   * Starts to look up the app of a request by its headers. Call the result with whether a provider served the request.
   * Only served requests register or change an app; otherwise free requests could fill the dataset with names.
   */
  readonly attribute: (headers: RequestHeaders) => AppOf
  /** The known facts of that app, without a query to the store. */
  readonly describe: (headers: RequestHeaders) => KnownApp
  /** Finishes writing the registry of new apps. */
  close(): Promise<void>
}

/**
 * The id of a request's app, once its line is in the registry. Never rejects: if the app cannot be registered, the
 * request counts for none, and the log has the reason.
 */
export type AppOf = (isServed: boolean) => Promise<number>

/** An app as responses describe it. */
export interface KnownApp {
  /** Undefined while a named app is not known. */
  readonly app_id?: number
  readonly app_name?: string
  /** Which part of the request named it. */
  readonly found_by: 'address' | 'title' | 'nothing'
}

interface Found {
  readonly app?: App
  /** Whether the store was unavailable. */
  readonly isAway: boolean
}

interface AttributionOptions {
  readonly dataDir: string
  readonly store: Store
  /** Whether new apps are published. */
  readonly visibility: NewAppVisibility
  readonly clock: Clock
  readonly log: Log
}

/** At a few hundred bytes each. */
const CACHED_APPS = 10_000

/** Claims by their headers, at most a thousand bytes each. */
const CACHED_CLAIMS = 1000
const CLAIM_CHARACTERS = 500

/**
 * Opens the attribution over a store and the registry file under `dataDir`.
 * @throws {OperatorError} if the registry file is damaged.
 */
export async function openAttribution(options: AttributionOptions): Promise<Attribution> {
  const { dataDir, store, log } = options
  const file = await openRegistryFile(dataDir, store, log)
  const register = createRegistration(options)
  const known = new LRUCache<string, App>({ max: CACHED_APPS })
  const claimOf = createClaimReader()
  let failing = false

  /** The store's result for a claim. Never rejects. */
  async function query(work: () => Promise<App | undefined>): Promise<Found> {
    try {
      const app = await work()
      if (app === undefined) return { isAway: false }
      // Another request or process may have registered the app a moment ago.
      await file.changed()
      known.set(app.identity, app)
      if (failing) log.info('apps can be registered again')
      failing = false
      return { app, isAway: false }
    } catch (error) {
      if (!failing)
        log.error({ err: error }, 'apps cannot be registered; requests of new apps are unattributed')
      failing = true
      return { isAway: true }
    }
  }

  async function lookFor(claim: AppClaim): Promise<Found> {
    const app = known.get(claim.identity)
    if (app === undefined || addsTo(app, claim)) return await query(() => findApp(store, claim.identity))
    return { app, isAway: false }
  }

  return {
    attribute(headers) {
      const claim = claimOf(headers)
      if (claim === undefined) return async () => UNATTRIBUTED_APP_ID
      const looking = lookFor(claim)
      return async (isServed) => {
        const found = await looking
        // Another request may have registered it meanwhile.
        const app = known.get(claim.identity) ?? found.app
        const isKnown = app !== undefined && !addsTo(app, claim)
        // If the store was unavailable when the request began, the request does not wait a second time.
        const canWait = isServed && !found.isAway
        const registered = isKnown || !canWait ? undefined : await query(() => register(claim, app))
        return (registered?.app ?? app)?.app_id ?? UNATTRIBUTED_APP_ID
      }
    },
    describe: (headers) => describeApp(claimOf(headers), known),
    close: () => file.close(),
  }
}

function describeApp(claim: AppClaim | undefined, known: LRUCache<string, App>): KnownApp {
  if (claim === undefined) return { app_id: UNATTRIBUTED_APP_ID, found_by: 'nothing' }
  const app = known.get(claim.identity)
  const found_by = claim.identity.startsWith(NAMED) ? 'title' : 'address'
  return app === undefined ? { found_by } : { app_id: app.app_id, app_name: app.app_name, found_by }
}

/** Registers the app of a claim, or stores what the claim adds; undefined when the day's limit is reached. */
function createRegistration({ store, visibility, clock, log }: AttributionOptions) {
  let fullDay: string | undefined
  return async (claim: AppClaim, app: App | undefined): Promise<App | undefined> => {
    const now = clock()
    // Once the day's limit is reached, no transaction is needed.
    if (app === undefined && fullDay === utcDay(now)) return undefined
    const registered = await ensureApp(store, claim, { visibility, now })
    if (registered === undefined) {
      fullDay = utcDay(now)
      log.warn(
        { limit: MAX_NEW_APPS_PER_DAY },
        'the limit of new apps per day is reached; further ones stay unattributed',
      )
    }
    return registered
  }
}

/** Reads the claim in the headers, cached by equal headers. */
function createClaimReader(): (headers: RequestHeaders) => AppClaim | undefined {
  const known = new LRUCache<string, { readonly claim: AppClaim | undefined }>({ max: CACHED_CLAIMS })
  return (headers) => {
    const relevant = appHeaders(headers)
    const key = JSON.stringify(relevant)
    const { claim } = known.get(key) ?? { claim: readAppClaim(relevant) }
    // Longer headers are not worth the memory.
    if (key.length <= CLAIM_CHARACTERS) known.set(key, { claim })
    return claim
  }
}
