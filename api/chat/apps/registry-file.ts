/**
 * Writes the apps of the store into the registry as DATA_DIR/raw/apps/chat.ndjson (CONTRACT 7). A temporary file and a
 * rename keep half a line from a nightly run. The file also restores the ids of a lost store: an id must never pass
 * from one app to another.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { SUBCATEGORIES } from '../../../pipeline/contract/taxonomy.ts'
import { OperatorError } from '../../http/errors.ts'
import type { Log } from '../../process/log.ts'
import type { Store } from '../../store/store.ts'
import { codeOf } from '../../process/system-errors.ts'
import { appSchema, listApps, restoreApps, stateOfApps, type App } from './app-store.ts'

const FILE = 'chat.ndjson'

/** Pause before a retry, in milliseconds. */
const RETRY_MS = 1000

/** Other pauses are this multiple of the work's time, since a file of many apps is slow to write. */
const PAUSES_PER_WORK = 4

// Another process may register apps in the same store, on a machine without our DATA_DIR.
const LOOK_EVERY_MS = 60_000

/** A line of the file; the pipeline ignores keys it does not know. */
const lineSchema = z.object({
  app_id: appSchema.shape.app_id,
  app_name: appSchema.shape.app_name,
  visibility: appSchema.shape.visibility,
  subcategories: z.array(z.enum(SUBCATEGORIES)),
  alias_of: z.null(),
  updated_at: z.iso.datetime(),
  referer: appSchema.shape.identity,
  registered_at: appSchema.shape.registered_at,
  revision: appSchema.shape.revision,
})
type Line = z.infer<typeof lineSchema>

export interface RegistryFile {
  /**
   * Reports that the store has changed. Resolves when the file has the change, so that no usage is recorded for an app
   * that the next run does not know. If the file cannot be written, resolves at once, and the write is retried. Never
   * rejects.
   */
  changed(): Promise<void>
  /** Writes pending changes. */
  close(): Promise<void>
}

/**
 * Restores apps that only the file knows to the store, then keeps the file up to date.
 * @throws {OperatorError} if this service did not write the file.
 */
export async function openRegistryFile(dataDir: string, store: Store, log: Log): Promise<RegistryFile> {
  const folder = join(dataDir, 'raw', 'apps')
  const restored = await restoreApps(store, await readApps(join(folder, FILE)))
  if (restored > 0)
    log.warn({ apps: restored }, 'apps that the store did not know taken from the registry file')
  let written: string | undefined

  async function tryToWrite(failedBefore: boolean): Promise<boolean> {
    try {
      written = await writeApps(folder, store, written)
      if (failedBefore) log.info('the registry file of new apps is written again')
      return true
    } catch (error) {
      if (!failedBefore)
        log.error({ err: error }, 'the registry file of new apps cannot be written; trying again')
      return false
    }
  }

  const writing = createGathered(tryToWrite)
  // A process that died may have left changes unwritten.
  void writing.want()
  const looking = setInterval(() => void writing.want(), LOOK_EVERY_MS).unref()
  return {
    changed: () => writing.want(),
    async close() {
      clearInterval(looking)
      // The store has everything: the next start repeats what fails here.
      await writing.close()
    },
  }
}

interface Gathered {
  /** Resolves when work that began after this call is done; at once while it fails. */
  want(): Promise<void>
  /** Does pending work once. */
  close(): Promise<void>
}

/**
 * Runs `work` once for all callers that wait, and retries failures. `work` receives whether it failed the last time and
 * returns whether it succeeded.
 */
function createGathered(work: (failedBefore: boolean) => Promise<boolean>): Gathered {
  const closing = new AbortController()
  let wanted = false
  let failed = false
  let next = Promise.withResolvers<void>()
  let running: Promise<void> | undefined

  async function once(): Promise<void> {
    wanted = false
    const { resolve } = next
    next = Promise.withResolvers<void>()
    failed = !(await work(failed))
    wanted ||= failed
    resolve()
  }

  async function keepUp(): Promise<void> {
    while (wanted && !closing.signal.aborted) {
      const began = performance.now()
      await once()
      const pause = failed ? RETRY_MS : PAUSES_PER_WORK * (performance.now() - began)
      await sleep(pause, undefined, { signal: closing.signal, ref: false }).catch(() => undefined)
    }
    running = undefined
  }

  return {
    async want() {
      wanted = true
      const { promise } = next
      running ??= keepUp()
      if (!failed) await promise
    },
    async close() {
      closing.abort()
      await running
      if (wanted) await once()
    },
  }
}

async function readApps(path: string): Promise<readonly App[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return ''
    throw new OperatorError(`${path} cannot be read: ${String(error)}`, { cause: error })
  })
  try {
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => fromLine(lineSchema.parse(JSON.parse(line))))
  } catch (error) {
    throw new OperatorError(
      `${path} is not as this service writes it: restore or correct it. It records which app has ` +
        `which app_id\n${String(error)}`,
      { cause: error },
    )
  }
}

/**
 * Writes until the file equals the store, and returns the store's state. Each write is followed by another look, since
 * another process may have overwritten the file with an older state.
 */
async function writeApps(folder: string, store: Store, written: string | undefined): Promise<string> {
  let done = written
  for (;;) {
    const state = await stateOfApps(store)
    if (state === done) return state
    const apps = await listApps(store)
    if (apps.length > 0) {
      await replaceFile(folder, apps.map((app) => `${JSON.stringify(toLine(app))}\n`).join(''))
    }
    done = state
  }
}

async function replaceFile(folder: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const aside = join(folder, `.${FILE}-${process.pid}-${randomBytes(4).toString('hex')}`)
  try {
    await writeFile(aside, text, { flush: true })
    await rename(aside, join(folder, FILE))
  } finally {
    await rm(aside, { force: true })
  }
}

/**
 * updated_at is the time of registration, plus a millisecond per change. So every decision of an operator outranks
 * requests, earlier and later ones (CONTRACT 7: the newest row counts).
 */
function toLine({ identity, revision, registered_at, ...app }: App): Line {
  const updated = new Date(Date.parse(registered_at) + revision)
  return {
    ...app,
    alias_of: null,
    updated_at: updated.toISOString(),
    referer: identity,
    registered_at,
    revision,
  }
}

function fromLine({ referer, alias_of: _none, updated_at: _made, ...app }: Line): App {
  return { ...app, identity: referer }
}
