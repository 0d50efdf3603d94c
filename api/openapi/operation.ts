import type { z } from 'zod'
import type { HeaderName } from './headers.ts'
import type { JsonSchema } from './schema.ts'

/** The groups of operations and their descriptions. */
export const TAGS = {
  dataset: 'The app rankings and their snapshots.',
  chat: 'Chat completions over several providers.',
  'directory sync': 'Groups of an organisation, synced from its SCIM directory.',
} as const
export type Tag = keyof typeof TAGS

/** A parameter of the document. */
export interface ParameterDescription {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly description: string
  /** Whether it is required; a path parameter always is. */
  readonly required?: boolean
  readonly schema: JsonSchema
}

/** A reply: its body by media type; `binary` for files. */
export interface ReplyDescription {
  readonly description: string
  readonly headers?: readonly HeaderName[]
  readonly content?: Readonly<Record<string, z.ZodType | 'binary' | 'text'>>
}

/** A request over the bundled sample; its key is suitable for the route. */
interface ExampleRequest {
  /** Path and query. */
  readonly path: string
  readonly withoutKey?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

/** The description of a route, beyond the route table. */
export interface Operation {
  readonly id: string
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly ParameterDescription[]
  /** Schema of a JSON request body. */
  readonly body?: z.ZodType
  /** Replies by status, including this route's own errors; the general ones are added. */
  readonly replies: Readonly<Record<string, ReplyDescription>>
  /** Requests with real replies as examples, one per status. */
  readonly examples?: readonly ExampleRequest[]
}
