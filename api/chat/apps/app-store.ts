/** The apps that requests named, in the store. An id is derived from the app's identity (app-identity.ts). */
import { z } from 'zod'
import {
  appIdOf,
  hostOf,
  NEW_APP_VISIBILITIES,
  type NewAppVisibility,
} from '../../../pipeline/contract/app-identity.ts'
import { utcDay } from '../../../pipeline/contract/calendar.ts'
import { SUBCATEGORIES, type Subcategory } from '../../../pipeline/contract/taxonomy.ts'
import type { Queries, Store } from '../../store/store.ts'
import type { AppClaim } from './app-claim.ts'

/** Limit of new apps per UTC day, far above normal use: it bounds the damage of nonsense headers. */
export const MAX_NEW_APPS_PER_DAY = 1000

/** Limit of subcategories per app. */
const MAX_SUBCATEGORIES = 10

const subcategoriesSchema = z
  .string()
  .transform((text) => z.array(z.enum(SUBCATEGORIES)).parse(text === '' ? [] : text.split('|')))

export const appSchema = z.object({
  app_id: z.int(),
  identity: z.string(),
  /** The title, or the host until a title is sent. */
  app_name: z.string(),
  visibility: z.enum(NEW_APP_VISIBILITIES),
  subcategories: subcategoriesSchema,
  /** Number of changes since registration. */
  revision: z.int(),
  registered_at: z.iso.datetime(),
})
export type App = z.infer<typeof appSchema>

const COLUMNS = 'app_id, identity, app_name, visibility, subcategories, revision, registered_at'
const FIND = `SELECT ${COLUMNS} FROM apps WHERE identity = $1`
const ALL = `SELECT ${COLUMNS} FROM apps ORDER BY app_id`
const IDS = 'SELECT app_id FROM apps'
const STATE = 'SELECT count(*) AS apps, coalesce(sum(revision), 0) AS revisions FROM apps'
const OWNER = 'SELECT identity FROM apps WHERE app_id = $1'
const NEW_SINCE = 'SELECT count(*) AS apps FROM apps WHERE registered_at >= $1'
const ADD = `INSERT INTO apps (${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
const CHANGE = 'UPDATE apps SET app_name = $2, subcategories = $3, revision = revision + 1 WHERE app_id = $1'

const countSchema = z.object({ apps: z.coerce.number() })
const stateSchema = z.object({ apps: z.coerce.number(), revisions: z.coerce.number() })

export async function findApp(queries: Queries, identity: string): Promise<App | undefined> {
  const [row] = await queries.query(FIND, [identity])
  return row === undefined ? undefined : appSchema.parse(row)
}

/** All apps, ordered by id. */
export async function listApps(store: Store): Promise<readonly App[]> {
  return z.array(appSchema).parse(await store.query(ALL))
}

/** A text that changes whenever an app is added or changed, and never repeats. */
export async function stateOfApps(store: Store): Promise<string> {
  const [row] = await store.query(STATE)
  const { apps, revisions } = stateSchema.parse(row)
  return `${apps} ${revisions}`
}

/**
 * Applies a claim to an app: the first title names it, and subcategories add up. A later title changes nothing, since
 * otherwise anybody who knows an app's address could rename it. Operators can rename apps.
 */
function merge(app: App, claim: AppClaim): App {
  const named = app.app_name !== hostOf(app.identity)
  const further = claim.subcategories.filter((tag) => !app.subcategories.includes(tag))
  return {
    ...app,
    app_name: named ? app.app_name : (claim.title ?? app.app_name),
    subcategories: [...app.subcategories, ...further].slice(0, MAX_SUBCATEGORIES),
  }
}

/** Whether a claim adds anything to the app. */
export function addsTo(app: App, claim: AppClaim): boolean {
  const merged = merge(app, claim)
  return merged.app_name !== app.app_name || merged.subcategories.length > app.subcategories.length
}

interface Settling {
  readonly visibility: NewAppVisibility
  readonly now: Date
}

/** Finds or registers the app of a claim and stores what the claim adds; undefined when the day's limit is reached. */
export async function ensureApp(store: Store, claim: AppClaim, how: Settling): Promise<App | undefined> {
  return await store.transaction(async (queries) => {
    const app = await findApp(queries, claim.identity)
    if (app === undefined) return await registerApp(queries, claim, how)
    if (!addsTo(app, claim)) return app
    const merged = merge(app, claim)
    await queries.query(CHANGE, [app.app_id, merged.app_name, tagText(merged.subcategories)])
    return { ...merged, revision: app.revision + 1 }
  })
}

async function registerApp(
  queries: Queries,
  { identity, title, subcategories }: AppClaim,
  { visibility, now }: Settling,
): Promise<App | undefined> {
  const [today] = await queries.query(NEW_SINCE, [`${utcDay(now)}T00:00:00.000Z`])
  if (countSchema.parse(today).apps >= MAX_NEW_APPS_PER_DAY) return undefined
  const app_id = appIdOf(identity)
  const [owner] = await queries.query(OWNER, [app_id])
  if (owner !== undefined) {
    throw new Error(
      `The apps ${identity} and ${String(owner['identity'])} have the same id by chance, ${app_id}`,
    )
  }
  const app: App = {
    app_id,
    identity,
    app_name: title ?? hostOf(identity),
    visibility,
    subcategories: [...subcategories],
    revision: 0,
    registered_at: now.toISOString(),
  }
  await addApp(queries, app)
  return app
}

/** Adds the apps with ids that the store lacks; returns how many were added. */
export async function restoreApps(store: Store, apps: readonly App[]): Promise<number> {
  return await store.transaction(async (queries) => {
    const rows = z.array(z.object({ app_id: z.int() })).parse(await queries.query(IDS))
    const known = new Set(rows.map(({ app_id }) => app_id))
    const missing = apps.filter(({ app_id }) => !known.has(app_id))
    for (const app of missing) await addApp(queries, app)
    return missing.length
  })
}

async function addApp(queries: Queries, app: App): Promise<void> {
  const { app_id, identity, app_name, visibility, subcategories, revision, registered_at } = app
  const tags = tagText(subcategories)
  await queries.query(ADD, [app_id, identity, app_name, visibility, tags, revision, registered_at])
}

function tagText(subcategories: readonly Subcategory[]): string {
  return subcategories.join('|')
}
