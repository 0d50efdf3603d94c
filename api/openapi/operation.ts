import { z } from 'zod'
import { errorEnvelopeSchema } from '../http/errors.ts'
import type { ParameterTable } from '../http/query-parameters.ts'
import type { HeaderName } from './headers.ts'

/** The groups of operations and their descriptions. */
export const TAGS = {
  dataset: 'The app rankings and their snapshots.',
  chat: 'Chat completions over several providers.',
  'directory sync': 'Groups of an organisation, synced from its SCIM directory.',
} as const
export type Tag = keyof typeof TAGS

type Content = Readonly<Record<string, z.ZodType>>

/** A reply: its body by media type. */
export interface ReplyDescription {
  readonly description: string
  readonly headers?: readonly HeaderName[]
  readonly content?: Content
  /** A short body in JSON. */
  readonly example?: unknown
}

/** The description of a route, beyond the route table. */
export interface Operation {
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
export const ENVELOPE: Content = { 'application/json': errorEnvelopeSchema.meta({ id: 'ErrorEnvelope' }) }

/** The content of a file. */
export const BINARY = z.string().meta({ format: 'binary' })
