/** Snapshots over HTTP (CONTRACT 4.6): their list, one of them, and its files. Open data: no key is needed. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Request } from 'express'
import { daySchema } from '../../../pipeline/contract/calendar.ts'
import { LICENCE } from '../../../pipeline/contract/dataset.ts'
import { CROISSANT_FILE, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import { jsonText, queryString, sendBody, type Handler, type Reply } from '../../http/call.ts'
import { encode, encodedTag, encodingHeader, preferredEncoding, type Encoding } from '../../http/encodings.ts'
import { ApiError } from '../../http/errors.ts'
import { isMismatch, isNotModified, isRangeOf, type Validators } from '../../http/headers.ts'
import {
  oneOf,
  readParameters,
  wholeNumber,
  type ParameterTable,
  type Values,
} from '../../http/query-parameters.ts'
import { codeOf } from '../../process/system-errors.ts'
import { shorten } from '../../untrusted/json.ts'
import { FORMATS } from '../formats.ts'
import { linkField, pagesAround } from '../links.ts'
import { CROISSANT_TYPE, isMonth, type SnapshotEntry, type SnapshotFile } from './catalogue.ts'
import { refuseDamaged, type Snapshots } from './current.ts'

/** The address of the newest snapshot, for scripts that download it each night. */
export const LATEST_PATH = `${SNAPSHOTS_PATH}/latest`

/** The caching of open replies that the next run may change. */
const SOON_STALE = 'public, max-age=60, must-revalidate'
// A proxy that changed the bytes would break their digest and their ranges.
const FOR_GOOD = 'public, max-age=31536000, immutable, no-transform'

/** The parameters of the list. */
export const LIST_PARAMETERS = {
  state: {
    ...oneOf(
      ['retained', 'all'],
      'The retained ones, or all that were ever published: records of pruned or retracted ones are permanent.',
    ),
    default: 'retained',
  },
  date: {
    schema: daySchema.describe('Only the one in force on this day (UTC), retained or not.'),
    allowed: 'a calendar date (UTC) in the form YYYY-MM-DD',
  },
  limit: wholeNumber(1, 100, 50, 'Snapshots of the page.'),
  offset: wholeNumber(0, 100_000, 0, 'Snapshots to skip.'),
} as const satisfies ParameterTable
type ListRequest = Values<typeof LIST_PARAMETERS>

/**
 * Lists snapshots, newest first: the retained ones, with `state=all` every published one, with `date` the one in force
 * on that day. Each has its state; the current and the withdrawn ones are marked.
 */
export function listSnapshots(snapshots: Snapshots): Handler {
  return async (request, reply) => {
    const asked: ListRequest = readParameters(LIST_PARAMETERS, queryString(request))
    const { limit = LIST_PARAMETERS.limit.default, offset = LIST_PARAMETERS.offset.default } = asked
    const { entries, retractions } = snapshots.catalogue.read()
    const chosen = chooseEntries(entries, asked)
    const parameters = { state: asked.state ?? LIST_PARAMETERS.state.default, limit, offset }
    const links = {
      ...pagesAround(SNAPSHOTS_PATH, parameters, chosen.length),
      'latest-version': LATEST_PATH,
      license: LICENCE.url,
    }
    const page = chosen.slice(offset, offset + limit)
    const data = page.map((entry) => ({ ...entry, current: entry.id === snapshots.current()?.id }))
    const body = { data, total_count: chosen.length, retracted: retractions }
    await sendOpen(request, reply.set('Link', linkField(links)), FORMATS.json.contentType, jsonText(body))
  }
}

function chooseEntries(entries: readonly SnapshotEntry[], { state, date }: ListRequest) {
  if (date !== undefined) return entries.filter((entry) => wasInForce(entry, date)).slice(0, 1)
  return state === 'all' ? entries : entries.filter((entry) => entry.state === 'retained')
}

/** Whether a snapshot was published and not withdrawn by the end of a day; the newest such one was in force. */
function wasInForce({ as_of, retracted_at }: SnapshotEntry, date: string): boolean {
  const isBy = (time: string) => time.slice(0, 'YYYY-MM-DD'.length) <= date
  return isBy(as_of) && (retracted_at === undefined || !isBy(retracted_at))
}

/** Describes one snapshot with its files; `latest` is the current one. */
export function showSnapshot(snapshots: Snapshots): Handler {
  return ofSnapshot(snapshots, async (entry, request, reply) => {
    reply.set('Link', linkField({ license: LICENCE.url, 'version-history': SNAPSHOTS_PATH }))
    const body = { data: { ...entry, current: entry.id === snapshots.current()?.id } }
    await sendOpen(request, reply, FORMATS.json.contentType, jsonText(body))
  })
}

/** Serves a file of a snapshot, also in a table's folder, whole or in byte ranges; it never changes. */
export function snapshotFile(snapshots: Snapshots): Handler {
  return ofSnapshot(snapshots, async (entry, request, reply) => {
    const { table, file: last } = request.params
    const name = [table, last].filter((part) => part !== undefined).join('/')
    const file = entry.files.find((each) => each.name === name)
    const { folder } = snapshots
    if (file === undefined && name === CROISSANT_FILE) {
      return await sendCroissant(request, reply, join(folder, entry.id, name), entry)
    }
    if (file === undefined) {
      throw new ApiError(404, `Snapshot ${entry.id} has no file "${shorten(name)}"; ${entry.url} lists all`)
    }
    refuseDamaged(folder, entry.id, file)
    const validators = { etag: `"${file.sha256}"`, lastModified: modificationTime(entry, snapshots) }
    reply.set({
      'Content-Type': file.media_type,
      'Cache-Control': FOR_GOOD,
      ETag: validators.etag,
      'Last-Modified': validators.lastModified.toUTCString(),
      'Repr-Digest': `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`,
      Link: linkField({ license: LICENCE.url, collection: entry.url }),
      ...(isMonth(file) && {
        'Content-Disposition': `attachment; filename="${name.replace('/month=', '-')}"`,
      }),
    })
    if (isMismatch(request.headers, validators)) {
      throw new ApiError(412, `${name} is not what If-Match or If-Unmodified-Since names`)
    }
    if (isNotModified(request.headers, validators)) return void reply.status(304).end()
    leaveToExpress(request, validators, file)
    await sendBytes(reply, join(folder, entry.id), file)
  })
}

/**
 * Answers about the retained snapshot in the path, and leads from `latest` to the current one.
 * @param answer throws an ApiError if the snapshot lacks what the rest of the path names.
 */
function ofSnapshot(
  snapshots: Snapshots,
  answer: (entry: SnapshotEntry, request: Request, reply: Reply) => Promise<void>,
): Handler {
  return async (request, reply) => {
    const id = String(request.params['id'])
    if (`${SNAPSHOTS_PATH}/${id}` === LATEST_PATH) {
      // The rest of the path stays encoded. Without Express's text body, which would depend on Accept.
      const rest = request.path.slice(LATEST_PATH.length)
      const Location = `${SNAPSHOTS_PATH}/${snapshots.currentId()}${rest}`
      return void reply.status(302).set({ 'Cache-Control': SOON_STALE, Location }).end()
    }
    const entry = snapshots.catalogue.describe(id)
    if (entry !== undefined) return await answer(entry, request, reply)
    throw new ApiError(404, `No such snapshot: "${shorten(id)}"; ${SNAPSHOTS_PATH} lists all`)
  }
}

/**
 * The modification time of a snapshot's files: when a retraction made it current again, otherwise when it was computed.
 * Mirrors such as `wget -N` keep a file of the same size unless its date is newer.
 */
function modificationTime({ id, as_of }: SnapshotEntry, snapshots: Snapshots): Date {
  const later = snapshots.catalogue.read().retractions.filter((each) => each.id > id)
  const again = id === snapshots.current()?.id ? later.map(({ retracted_at }) => retracted_at) : []
  return new Date([as_of, ...again].toSorted().at(-1) ?? as_of)
}

/**
 * Leaves the range alone to Express, of a HEAD too (DuckDB in browsers probes so for ranges). It would send the whole file to
 * a request with no-cache (as every fetch() with a tag does), take weak tags as strong and times as growing.
 */
function leaveToExpress(request: Request, validators: Validators, { bytes }: SnapshotFile): void {
  const { range } = request.headers
  const suffix = /^bytes=-(\d+)$/i.exec(range ?? '')?.[1]
  // A suffix longer than the file is the whole file (RFC 9110, 14.1.2).
  const whole = Number(suffix) > bytes ? 'bytes=0-' : range
  const counts = whole !== undefined && isRangeOf(request.get('If-Range'), validators)
  request.headers = counts ? { range: whole } : {}
}

/** Express handles ranges and HEAD; the headers are set before. */
async function sendBytes(reply: Reply, root: string, { name, bytes }: SnapshotFile): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const options = { root, cacheControl: false, etag: false, lastModified: false }
  reply.sendFile(name, options, (error?: Error & { readonly status?: number }) => {
    const isDisconnected = ['ECONNABORTED', 'EPIPE'].includes(codeOf(error) ?? '')
    if (error === undefined || isDisconnected) resolve()
    else if (error.status !== 416) reject(error)
    else reject(new ApiError(416, `The range is outside ${name}, which has ${bytes} bytes`))
  })
  await promise
}

const RELATIVE_URL = /"contentUrl": "(?!https?:)/g

/** Sends the description of a snapshot with whole addresses, which its readers need where there is no folder. */
async function sendCroissant(request: Request, reply: Reply, path: string, { url }: SnapshotEntry) {
  const text = await readFile(path, 'utf8')
  const address = encodeURI(`${request.protocol}://${request.host}${url}/`)
  const whole = text.replaceAll(RELATIVE_URL, () => `"contentUrl": "${address}`)
  await sendOpen(request, reply, CROISSANT_TYPE, whole)
}

/** Sends a text that changes with the next run, in the client's preferred coding, or a 304. */
export async function sendOpen(request: Request, reply: Reply, type: string, text: string): Promise<void> {
  const encoding = preferredEncoding(request)
  const checksum = createHash('sha256').update(text).digest('hex')
  await sendEncoded(request, reply, { type, checksum, encoding }, () => encode(Buffer.from(text), encoding))
}

type OpenBody = {
  readonly type: string
  /** Checksum of the body before it is encoded. */
  readonly checksum: string
  readonly encoding: Encoding
}

/** Sends the encoded body of a reply that changes with the next run, or a 304, which needs no body. */
export async function sendEncoded(
  request: Request,
  reply: Reply,
  { type, checksum, encoding }: OpenBody,
  read: () => Buffer | Promise<Buffer>,
): Promise<void> {
  const etag = encodedTag(checksum, encoding)
  reply.set({ ETag: etag, 'Cache-Control': SOON_STALE, Vary: 'Accept-Encoding' })
  if (isNotModified(request.headers, { etag })) return void reply.status(304).end()
  sendBody(reply.set(encodingHeader(encoding)), 200, type, await read())
}
