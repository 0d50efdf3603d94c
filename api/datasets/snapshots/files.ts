/** The files of snapshots over HTTP (CONTRACT 4.6). Open data: no key is needed. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Request } from 'express'
import { LICENCE } from '../../../pipeline/contract/dataset.ts'
import { CROISSANT_FILE, SNAPSHOTS_FOLDER, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { sizeFault } from '../../../pipeline/contract/snapshot-record.ts'
import type { Handler, Headers, Reply } from '../../http/call.ts'
import { ApiError } from '../../http/errors.ts'
import { isMismatch, isNotModified, isRangeOf } from '../../http/headers.ts'
import { encode, encodedTag, encodingHeader, preferredEncoding } from '../../http/encodings.ts'
import { sendBody } from '../../http/respond.ts'
import { codeOf } from '../../process/system-errors.ts'
import { shorten } from '../../untrusted/shorten.ts'
import { attachmentHeader } from '../formats.ts'
import {
  CROISSANT_TYPE,
  isMonth,
  type SnapshotCatalogue,
  type SnapshotEntry,
  type SnapshotFile,
} from './catalogue.ts'
import { noSnapshot, refuseGone } from './choose.ts'
import type { Snapshots } from './current.ts'

/** The alias of the newest snapshot in addresses, for scripts that download it each night. */
export const LATEST = 'latest'

const SOON_STALE = 'public, max-age=60, must-revalidate'
// A proxy that changed the bytes would break their digest and their ranges.
const FOR_GOOD = 'public, max-age=31536000, immutable, no-transform'

/** Serves a file of a snapshot, also in a table's folder, whole or in byte ranges; it never changes. */
export function snapshotFile({ dataDir, catalogue, current }: Snapshots): Handler {
  return async (request, reply) => {
    const id = pathPart(request, 'id')
    const parts = [pathPart(request, 'table'), pathPart(request, 'file')].filter((part) => part !== '')
    if (id === LATEST) return redirectToLatest(reply, current, parts)
    const entry = findRetained(catalogue, id)
    const name = parts.join('/')
    const file = entry.files.find((each) => each.name === name)
    const folder = join(dataDir, SNAPSHOTS_FOLDER, id)
    if (name === CROISSANT_FILE && file === undefined) return await sendCroissant(request, reply, folder, id)
    if (file === undefined) {
      const names = entry.files.map((each) => each.name).join(', ')
      throw new ApiError(404, `Snapshot ${id} has no file "${shorten(name)}"; it has: ${names}`)
    }
    refuseDamaged(folder, id, file)
    const etag = `"${file.sha256}"`
    const validators = modificationTimes(entry, { catalogue, current }).map((lastModified) => ({
      etag,
      lastModified,
    }))
    reply.set(headersOf(entry, file))
    reply.set('Last-Modified', validators[0]?.lastModified.toUTCString())
    const { headers } = request
    if (validators.every((each) => isMismatch(headers, each))) throw preconditionFailed(file)
    if (validators.some((each) => isNotModified(headers, each))) return void reply.status(304).end()
    const isOfThis = validators.some((each) => isRangeOf(request.get('If-Range'), each))
    leaveToExpress(request, isOfThis, file)
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
 * The modification times of a snapshot's files: when it was computed and, before it, when a retraction made it current
 * again. Mirrors such as `wget -N` keep a file of the same size unless its date is newer.
 */
function modificationTimes(
  { id, as_of }: SnapshotEntry,
  { current, catalogue }: Pick<Snapshots, 'current' | 'catalogue'>,
): Date[] {
  const computed = new Date(as_of)
  if (id !== current.facts()?.id) return [computed]
  const later = catalogue.retractions().filter((each) => each.id > id)
  const times = later.map(({ retracted_at }) => retracted_at).toSorted()
  const again = new Date(times.at(-1) ?? 0)
  return again > computed ? [again, computed] : [computed]
}

function preconditionFailed({ name }: SnapshotFile): ApiError {
  return new ApiError(412, `${name} is not what If-Match or If-Unmodified-Since names`)
}

function headersOf(entry: SnapshotEntry, file: SnapshotFile): Headers {
  return {
    'Content-Type': file.media_type,
    'Cache-Control': FOR_GOOD,
    ETag: `"${file.sha256}"`,
    'Repr-Digest': `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`,
    Link: `<${LICENCE.url}>; rel="license", <${SNAPSHOTS_PATH}/${entry.id}>; rel="collection"`,
    ...(isMonth(file) ? attachmentHeader(file.name.replace('/month=', '-')) : {}),
  }
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
 * Leaves Express what it handles by the standard. Express sends the whole file to a request with no-cache (as every
 * fetch() with a tag does), takes weak tags as strong and times as growing. A suffix range longer than the file means the
 * whole file (RFC 9110, 14.1.2).
 */
function leaveToExpress({ headers }: Request, isOfThis: boolean, { bytes }: SnapshotFile): void {
  const { range } = headers
  for (const name of CONDITIONS) delete headers[name]
  const last = SUFFIX.exec(range ?? '')?.[1]
  if (last !== undefined && Number(last) > bytes) headers.range = 'bytes=0-'
  if (!isOfThis) delete headers.range
}

// Express handles ranges and HEAD; tag, time and type are set before.
async function sendFile(reply: Reply, file: SnapshotFile, root: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const options = { root, cacheControl: false, etag: false, lastModified: false }
  reply.sendFile(file.name, options, (error?: Error) => {
    const hasLeft = error !== undefined && ['ECONNABORTED', 'EPIPE'].includes(codeOf(error) ?? '')
    if (error === undefined || hasLeft) resolve()
    else reject(refusalOf(error, file))
  })
  await promise
}

/** The client's error; an unreadable file is a fault of the service, whatever status Express gives it. */
function refusalOf(error: Error, { name, bytes }: SnapshotFile): Error {
  if (!('status' in error) || error.status !== 416)
    return new Error(`${name} cannot be read`, { cause: error })
  return new ApiError(416, `The range is outside ${name}, which has ${bytes} bytes`, {
    headers: { 'Content-Range': `bytes */${bytes}` },
  })
}

const RELATIVE_URL = /"contentUrl": "(?!https?:)/g

/** Sends the description of a snapshot with whole addresses, which its readers need where there is no folder. */
async function sendCroissant(request: Request, reply: Reply, folder: string, id: string): Promise<void> {
  const text = await readFile(join(folder, CROISSANT_FILE), 'utf8')
  const address = encodeURI(`${request.protocol}://${request.host}${SNAPSHOTS_PATH}/${id}/`)
  const whole = text.replaceAll(RELATIVE_URL, () => `"contentUrl": "${address}`)
  await sendOpen(request, reply, CROISSANT_TYPE, whole)
}

/** Sends a body that changes with the next run, in the client's preferred coding, or a 304. */
export async function sendOpen(request: Request, reply: Reply, type: string, text: string): Promise<void> {
  const encoding = preferredEncoding(request)
  const etag = encodedTag(createHash('sha256').update(text).digest('hex'), encoding)
  reply.set({ ETag: etag, 'Cache-Control': SOON_STALE, Vary: 'Accept-Encoding' })
  if (isNotModified(request.headers, { etag })) return void reply.status(304).end()
  sendBody(reply.set(encodingHeader(encoding)), 200, type, await encode(Buffer.from(text), encoding))
}

/** Leads from `latest` to the current snapshot, or to a file of it. */
export function redirectToLatest(
  reply: Reply,
  current: Snapshots['current'],
  parts: readonly string[] = [],
): void {
  const id = current.facts()?.id
  if (id === undefined && current.fault() !== undefined) throw noSnapshot(current)
  if (id === undefined) throw new ApiError(404, 'No snapshot of the dataset has been published yet')
  const rest = parts.map((part) => `/${encodeURIComponent(part).replaceAll('%3D', '=')}`).join('')
  // Without Express's text body, which would depend on Accept.
  const headers = { 'Cache-Control': SOON_STALE, Location: `${SNAPSHOTS_PATH}/${id}${rest}` }
  reply.status(302).set(headers).end()
}

/** @throws {ApiError} 410 for a retracted or pruned snapshot, 404 for an unknown one. */
export function findRetained(catalogue: SnapshotCatalogue, id: string): SnapshotEntry {
  refuseGone(catalogue, id)
  const entry = catalogue.describe(id)
  if (entry !== undefined) return entry
  throw new ApiError(404, `No such snapshot: "${shorten(id)}"; ${SNAPSHOTS_PATH} lists all`)
}

/** A part of the path of a request; empty without it. */
export function pathPart(request: Request, name: string): string {
  const part = request.params[name]
  return typeof part === 'string' ? part : ''
}
