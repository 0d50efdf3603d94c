/** Attribution of requests to apps (CONTRACT 6): known apps from memory, new ones registered in the store. */
import { LRUCache } from 'lru-cache'
import { NAMED, type NewAppVisibility } from '../../../pipeline/contract/app-identity.ts'
import { utcDay } from '../../../pipeline/contract/calendar.ts'
import { UNATTRIBUTED_APP_ID } from '../../../pipeline/contract/dataset.ts'
import type { Clock } from '../../http/call.ts'
import type { Log } from '../../process/log.ts'
import type { Store } from '../../store/store.ts'
import { appHeaders, readAppClaim, type AppClaim, type RequestHeaders } from './app-claim.ts'
import { addsTo, findApp, MAX_NEW_APPS_PER_DAY, settleApp, type App } from './app-store.ts'
import { openRegistryFile } from './registry-file.ts'

export interface Attribution {
  /**
   * Begins to look for the app that a request belongs to by its headers; whether a provider served the request is to be
   * said once that is known. Only a request that was served registers an app that is new, or adds to one: what is refused
   * costs nobody anything, and would fill the dataset with names.
   */
  readonly attribute: (headers: RequestHeaders) => AppOf
  /** What is known of that app by now, without asking the store. */
  readonly describe: (headers: RequestHeaders) => KnownApp
  /** Writes the registry of new apps to its end. */
  close(): Promise<void>
}

/**
 * The id of a request's app, once its line is in the registry. Never rejects: a request whose app cannot be settled is
 * attributed to none, and the log says why.
 */
export type AppOf = (isServed: boolean) => Promise<number>

/** An app as its requests are told of it. */
export interface KnownApp {
  /** Undefined while an app that was named is not known. */
  readonly app_id?: number
  readonly app_name?: string
  /** What of the request named it. */
  readonly found_by: 'address' | 'title' | 'nothing'
}

interface Found {
  readonly app?: App
  /** Whether the store could not be asked. */
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

/** Apps kept in memory: a few hundred bytes each. */
const CACHED_APPS = 10_000

/** Claims kept in memory, by the headers that make them: a thousand bytes each at most. */
const CACHED_CLAIMS = 1000
const CLAIM_CHARACTERS = 500

/**
 * Opens the attribution over a store and the registry file under `dataDir`.
 * @throws {OperatorError} when the registry file was damaged.
 */
export async function openAttribution(options: AttributionOptions): Promise<Attribution> {
  const { dataDir, store, log } = options
  const file = await openRegistryFile(dataDir, store, log)
  const settle = createSettler(options)
  const known = new LRUCache<string, App>({ max: CACHED_APPS })
  const claimOf = createClaimReader()
  let failing = false

  /** What the store gives for a claim. Never rejects. */
  async function ask(work: () => Promise<App | undefined>): Promise<Found> {
    try {
      const app = await work()
      if (app === undefined) return { isAway: false }
      // One that was found may have been registered a moment ago, by another request or process.
      await file.changed()
      known.set(app.identity, app)
      if (failing) log.info('apps are settled again')
      failing = false
      return { app, isAway: false }
    } catch (error) {
      if (!failing) log.error({ err: error }, 'apps cannot be settled; requests of new ones are unattributed')
      failing = true
      return { isAway: true }
    }
  }

  async function lookFor(claim: AppClaim): Promise<Found> {
    const app = known.get(claim.identity)
    if (app === undefined || addsTo(app, claim)) return await ask(() => findApp(store, claim.identity))
    return { app, isAway: false }
  }

  return {
    attribute(headers) {
      const claim = claimOf(headers)
      if (claim === undefined) return async () => UNATTRIBUTED_APP_ID
      const looking = lookFor(claim)
      return async (isServed) => {
        const found = await looking
        // Another request may have settled it meanwhile.
        const app = known.get(claim.identity) ?? found.app
        const isSettled = app !== undefined && !addsTo(app, claim)
        // Where the store was away when the request began, it does not wait a second time.
        const canWait = isServed && !found.isAway
        const settled = isSettled || !canWait ? undefined : await ask(() => settle(claim, app))
        return (settled?.app ?? app)?.app_id ?? UNATTRIBUTED_APP_ID
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

/** Registers the app of a claim, or keeps what the claim adds; undefined where the day has no room for another. */
function createSettler({ store, visibility, clock, log }: AttributionOptions) {
  let fullDay: string | undefined
  return async (claim: AppClaim, app: App | undefined): Promise<App | undefined> => {
    const now = clock()
    // A full day needs no transaction to be full.
    if (app === undefined && fullDay === utcDay(now)) return undefined
    const settled = await settleApp(store, claim, { visibility, now })
    if (settled === undefined) {
      fullDay = utcDay(now)
      log.warn({ limit: MAX_NEW_APPS_PER_DAY }, 'too many new apps today; further ones stay unattributed')
    }
    return settled
  }
}

/** Reads the claim that headers make; equal headers that came before were read then. */
function createClaimReader(): (headers: RequestHeaders) => AppClaim | undefined {
  const known = new LRUCache<string, { readonly claim: AppClaim | undefined }>({ max: CACHED_CLAIMS })
  return (headers) => {
    const telling = appHeaders(headers)
    const key = JSON.stringify(telling)
    const { claim } = known.get(key) ?? { claim: readAppClaim(telling) }
    // Longer headers are not worth the memory.
    if (key.length <= CLAIM_CHARACTERS) known.set(key, { claim })
    return claim
  }
}
