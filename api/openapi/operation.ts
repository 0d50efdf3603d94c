import type { z } from 'zod'
import type { HeaderName } from './headers.ts'
import type { JsonSchema } from './schema.ts'

/** The groups of operations, each with what it is for. */
export const TAGS = {
  dataset: 'The app rankings and their snapshots.',
  chat: 'Chat completions over several providers.',
  'directory sync': 'Groups of an organisation, synced from its SCIM directory.',
} as const
export type Tag = keyof typeof TAGS

/** A parameter as the document tells it. */
export interface ParameterDescription {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly description: string
  /** Whether a request must have it; a path always does. */
  readonly required?: boolean
  readonly schema: JsonSchema
}

/** A reply: its body by media type; `binary` for files. */
export interface ReplyDescription {
  readonly description: string
  readonly headers?: readonly HeaderName[]
  readonly content?: Readonly<Record<string, z.ZodType | 'binary' | 'text'>>
}

/** A request over the bundled sample; the key it carries fits every route. */
interface ExampleRequest {
  /** Path and query. */
  readonly path: string
  readonly withoutKey?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

/** What the document says of a route beyond what the route table knows. */
export interface Operation {
  readonly id: string
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly ParameterDescription[]
  /** Schema of a JSON request body. */
  readonly body?: z.ZodType
  /** Replies by status, errors that are this route's own among them; the general ones are added. */
  readonly replies: Readonly<Record<string, ReplyDescription>>
  /** Requests whose real replies stand in the document as examples, one for a status. */
  readonly examples?: readonly ExampleRequest[]
}
