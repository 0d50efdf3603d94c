/** The files of snapshots over HTTP (CONTRACT 4.6). Open data: no key is needed. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Request } from 'express'
import { LICENCE } from '../../../pipeline/contract/dataset.ts'
import { CROISSANT_FILE, SNAPSHOTS_FOLDER, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { sizeFault } from '../../../pipeline/contract/snapshot-record.ts'
import type { Handler, Reply } from '../../http/call.ts'
import { isMismatch, isNotModified, isRangeOf, type Validators } from '../../http/protocol/conditional.ts'
import { ApiError } from '../../http/errors.ts'
import { shorten } from '../../untrusted/shorten.ts'
import { codeOf } from '../../process/system-errors.ts'
import { attachmentHeader } from '../formats/formats.ts'
import { sendCroissant } from './croissant.ts'
import { isMonth, type SnapshotCatalogue, type SnapshotEntry, type SnapshotFile } from './catalogue.ts'
import { goneSnapshot, noSnapshot, type Snapshots } from './choose.ts'
import { SOON_STALE } from './open-reply.ts'

/** The alias of the newest snapshot in addresses, for scripts that download it each night. */
export const LATEST = 'latest'

// A proxy that changed the bytes would break their digest and their ranges.
const FOR_GOOD = 'public, max-age=31536000, immutable, no-transform'

/** Serves a file of a snapshot, also in a table's folder, whole or in byte ranges; it never changes. */
export function snapshotFile({ dataDir, catalogue, current }: Snapshots): Handler {
  return async (request, reply) => {
    const id = pathPart(request, 'id')
    const parts = [pathPart(request, 'table'), pathPart(request, 'file')].filter((part) => part !== '')
    const name = parts.join('/')
    if (id === LATEST) return redirectToLatest(reply, current, `/${parts.map(pathText).join('/')}`)
    const entry = findRetained(catalogue, id)
    const file = entry.files.find((each) => each.name === name)
    const folder = join(dataDir, SNAPSHOTS_FOLDER, id)
    if (name === CROISSANT_FILE && file === undefined) {
      return await sendCroissant(request, reply, { id, folder })
    }
    if (file === undefined) {
      const names = entry.files.map((each) => each.name).join(', ')
      throw new ApiError(404, `Snapshot ${id} has no file "${shorten(name)}"; it has: ${names}`)
    }
    refuseDamaged(folder, id, file)
    const times = modificationTimes(entry, { catalogue, current })
    reply.set(fileHeaders(entry, file)).set('Last-Modified', times[0].toUTCString())
    const { headers } = request
    const validators = times.map((lastModified) => ({ etag: `"${file.sha256}"`, lastModified }))
    if (validators.every((each) => isMismatch(headers, each))) throw preconditionFailed(file)
    if (validators.some((each) => isNotModified(headers, each))) return void reply.status(304).end()
    passToExpress(request, validators, file)
    await sendFile(reply, file, folder)
  }
}

/** A file that is not the published one is never served; the log has the remedy. */
function refuseDamaged(folder: string, id: string, file: SnapshotFile): void {
  const fault = sizeFault(folder, file)
  // A snapshot that was removed meanwhile is not damaged.
  if (fault === undefined || !existsSync(folder)) return
  throw new Error(
    `The published file ${id}/${file.name} ${fault}. Restore it from a backup; npm run nightly -- verify ${id} checks it`,
  )
}

/**
 * The modification time of a snapshot's files: when it was computed or, after a retraction, when it became current
 * again. Mirrors such as `wget -N` keep a file of the same size unless its date is newer.
 */
function modificationTimes(
  { id, as_of }: SnapshotEntry,
  { current, catalogue }: Pick<Snapshots, 'current' | 'catalogue'>,
): [Date, ...Date[]] {
  const computed = new Date(as_of)
  if (id !== current.facts()?.id) return [computed]
  const later = catalogue.retractions().filter((each) => each.id > id)
  const times = later.map(({ retracted_at }) => new Date(retracted_at)).filter((time) => time > computed)
  const [newest] = times.toSorted((one, other) => other.getTime() - one.getTime())
  return newest === undefined ? [computed] : [newest, computed]
}

const CONDITIONS = [
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
] as const
const SUFFIX = /^bytes=-(\d+)$/i

/**
 * Passes on to Express what it handles by the standard. Express sends the whole file to a request with no-cache (as
 * every fetch() with a tag does), takes weak tags as strong and times as growing. A suffix range longer than the file
 * means the whole file (RFC 9110, 14.1.2).
 */
function passToExpress(request: Request, validators: readonly Validators[], { bytes }: SnapshotFile): void {
  const { headers } = request
  const { range } = headers
  const isOfThis = validators.some((each) => isRangeOf(request.get('If-Range'), each))
  for (const name of CONDITIONS) delete headers[name]
  const last = SUFFIX.exec(range ?? '')?.[1]
  if (last !== undefined && Number(last) > bytes) headers.range = 'bytes=0-'
  if (!isOfThis) delete headers.range
}

function preconditionFailed({ name }: SnapshotFile): ApiError {
  return new ApiError(412, `${name} is not what If-Match or If-Unmodified-Since names`)
}

function fileHeaders(entry: SnapshotEntry, file: SnapshotFile): Readonly<Record<string, string>> {
  return {
    'Content-Type': file.media_type,
    'Cache-Control': FOR_GOOD,
    ETag: `"${file.sha256}"`,
    'Repr-Digest': `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`,
    Link: `<${LICENCE.url}>; rel="license", <${SNAPSHOTS_PATH}/${entry.id}>; rel="collection"`,
    ...(isMonth(file) ? attachmentHeader(file.name.replace('/month=', '-')) : {}),
  }
}

// Express handles ranges, preconditions and HEAD; tag, time and type are set before.
async function sendFile(reply: Reply, file: SnapshotFile, root: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const options = { root, cacheControl: false, etag: false, lastModified: false }
  reply.sendFile(file.name, options, (error?: Error) => {
    if (error === undefined || isHangUp(error)) resolve()
    else reject(refusalOf(error, file))
  })
  await promise
}

/** The client's error; an unreadable file is a fault of the service, whatever status Express gives it. */
function refusalOf(error: Error, file: SnapshotFile): Error {
  const { name, bytes } = file
  const status = 'status' in error ? error.status : undefined
  if (status === 412) return preconditionFailed(file)
  if (status !== 416) return new Error(`${name} cannot be read`, { cause: error })
  return new ApiError(416, `The range is outside ${name}, which has ${bytes} bytes`, {
    headers: { 'Content-Range': `bytes */${bytes}` },
  })
}

/** The client left in the middle. */
function isHangUp(error: Error): boolean {
  const code = codeOf(error)
  return code === 'ECONNABORTED' || code === 'EPIPE'
}

/** Leads from `latest` to the current snapshot, or a file of it. */
export function redirectToLatest(reply: Reply, current: Snapshots['current'], rest: string): void {
  const id = current.facts()?.id
  if (id === undefined && current.fault() !== undefined) throw noSnapshot(current)
  if (id === undefined) throw new ApiError(404, 'No snapshot of the dataset has been published yet')
  // Without Express's text body, which would depend on Accept.
  const headers = { 'Cache-Control': SOON_STALE, Location: `${SNAPSHOTS_PATH}/${id}${rest}` }
  reply.status(302).set(headers).end()
}

/** @throws {ApiError} 410 for a retracted or pruned snapshot, 404 for an unknown one. */
export function findRetained(catalogue: SnapshotCatalogue, id: string): SnapshotEntry {
  const gone = goneSnapshot(catalogue, id)
  if (gone !== undefined) throw gone
  const entry = catalogue.describe(id)
  if (entry !== undefined) return entry
  throw new ApiError(404, `No such snapshot: "${shorten(id)}"; ${SNAPSHOTS_PATH} lists all`)
}

/** A part of a path, encoded; `=` is allowed unencoded. */
function pathText(part: string): string {
  return encodeURIComponent(part).replaceAll('%3D', '=')
}

/** A part of the path of a request; empty without it. */
export function pathPart(request: Request, name: string): string {
  const part = request.params[name]
  return typeof part === 'string' ? part : ''
}
