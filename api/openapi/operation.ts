/** How routes are described for the OpenAPI document. */
import { z } from 'zod'
import { POLICIES } from '../accounts/rate-limiter.ts'
import { errorEnvelopeSchema } from '../http/errors.ts'
import type { ParameterTable } from '../http/query-parameters.ts'

/** The groups of operations and their descriptions. */
export const TAGS = {
  dataset: 'The app rankings and their snapshots.',
  chat: 'Chat completions over several providers.',
  'directory sync': 'Groups of an organisation, synced from its SCIM directory.',
} as const
type Tag = keyof typeof TAGS

const text = (description: string) => ({ description, schema: { type: 'string' as const } })

/** The headers that a program reads, each described once; HTTP clients know those of caching and of content themselves. */
export const HEADERS = {
  'Content-Range': text('The range of bytes in the reply, and the size of the whole.'),
  ETag: text('Strong entity tag of snapshot, query and format.'),
  Link: text('RFC 8288 links: pages (pinned to the snapshot), licence, metadata, citation, newest snapshot.'),
  Location: text('The address to continue at.'),
  RateLimit: text('The rest of each limit (`r`) and the seconds until it resets (`t`).'),
  'RateLimit-Policy': text(
    `The limits: ${POLICIES.map(({ limit, sentence }) => `${limit} requests ${sentence}`).join(', ')}.`,
  ),
  'Repr-Digest': text('SHA-256 of the whole file (RFC 9530).'),
  'Retry-After': text('Seconds to wait before another attempt.'),
  'WWW-Authenticate': text('`Bearer`.'),
  'X-App-Id': text('The app that the request was counted for; 0 if it named none.'),
  'X-Total-Count': text('The total of the list, in the unit of `limit` and `offset`.'),
  'X-Request-Id': text('Identifier of the request, as in the log.'),
} as const

type HeaderName = keyof typeof HEADERS

type Content = Readonly<Record<string, z.ZodType>>

/** A reply: its body by media type. */
export type ReplyDescription = {
  readonly description: string
  readonly headers?: readonly HeaderName[]
  readonly content?: Content
}

/** The description of a route, beyond the route table. */
export type Operation = {
  readonly id: string
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  readonly query?: ParameterTable
  /** The parameters of the path. */
  readonly path?: Readonly<Record<string, z.ZodType>>
  /** Schema of a JSON request body. */
  readonly body?: z.ZodType
  /** Replies by status, including this route's own errors; the general ones are added. */
  readonly replies: Readonly<Record<string, ReplyDescription>>
}

/** The content of every error (CONTRACT 3). */
const ENVELOPE: Content = { 'application/json': errorEnvelopeSchema.meta({ id: 'ErrorEnvelope' }) }

/** The description of an error. */
export function fault(description: string, headers: readonly HeaderName[] = []): ReplyDescription {
  return { description, headers, content: ENVELOPE }
}

/** The content of a file. */
export const BINARY = z.string().meta({ format: 'binary' })
