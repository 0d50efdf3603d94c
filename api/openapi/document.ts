/** The OpenAPI 3.1 document, built from the route table and the validation schemas (CONTRACT 4.6). */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { COMPARABILITY_NOTE, LICENCE } from '../../pipeline/contract/dataset.ts'
import { errorEnvelopeSchema } from '../http/errors.ts'
import type { Route } from '../http/route.ts'
import type { Examples } from './collect-examples.ts'
import { HEADERS, type HeaderName } from './headers.ts'
import { TAGS, type Operation, type ReplyDescription } from './operation.ts'
import { jsonSchema } from './schema.ts'

/** Real replies, written by `npm run openapi`; a test compares them with the service. */
export function storedExamples(): Examples {
  const text = readFileSync(new URL('examples.json', import.meta.url), 'utf8')
  return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
}

const DESCRIPTION = `Which apps use large language models, by how much, and which are growing: a public dataset (CC BY 4.0) with
versioned snapshots. Reuse requires attribution to the publisher, stating the \`meta.as_of\` time.
${COMPARABILITY_NOTE}

Errors that precede every operation have the same body: 400 (invalid HTTP, or an address that is not encoded correctly), 404 (no such path), 405 (\`Allow\` lists the methods), 408 (the request did not arrive in time), 431 (the request line and headers are too large).`

const KEYS =
  'An API key, made with `npm run keys`: of kind inference for chat, of kind management for directory sync, of either for the rankings.'

type Document = Readonly<Record<string, unknown>>

/** Builds the document of all described routes; schemas with a name stand among its components. */
export function openApiDocument(routes: readonly Route[], examples: Examples): Document {
  const named: Record<string, unknown> = {}
  const document = inlineDocument(routes, examples)
  const described = JSON.parse(JSON.stringify(document), (key, value: unknown) => {
    if (key === '$ref' && typeof value === 'string') return value.replace('#/$defs/', '#/components/schemas/')
    if (key !== '$defs') return value
    Object.assign(named, value)
    return undefined
  })
  const { components } = documentSchema.parse(described)
  Object.assign(components.schemas, named)
  return { ...document, ...described, components }
}

const documentSchema = z.object({ components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }) })

function inlineDocument(routes: readonly Route[], examples: Examples): Document {
  return {
    openapi: '3.1.1',
    info: {
      title: 'App rankings',
      version: '1.0.0',
      description: DESCRIPTION,
      license: { name: 'CC BY 4.0 (data)', url: LICENCE.url },
    },
    servers: [{ url: '/', description: 'This service' }],
    security: [],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: pathsOf(routes, examples),
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: KEYS },
      },
      schemas: { ErrorEnvelope: jsonSchema(errorEnvelopeSchema, 'output') },
      headers: HEADERS,
    },
  }
}

function pathsOf(routes: readonly Route[], examples: Examples): Document {
  const paths: Record<string, Record<string, Document>> = {}
  for (const route of routes) {
    if (route.operation === undefined) continue
    const path = route.path.replaceAll(/:([a-z_]+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route, route.operation, examples) }
  }
  return paths
}

function describe(route: Route, operation: Operation, examples: Examples): Document {
  const { id, tag, summary, description, parameters, body, replies } = operation
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(route.access === 'open' ? {} : { security: [{ key: [] }] }),
    ...(parameters === undefined
      ? {}
      : {
          parameters: parameters.map((parameter) => ({
            ...parameter,
            required: parameter.required ?? parameter.in === 'path',
          })),
        }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: jsonSchema(body, 'input') } },
          },
        }),
    responses: Object.fromEntries(
      Object.entries({ ...generalReplies(route), ...replies }).map(([status, reply]) => [
        status,
        describeReply(withLimits(route, reply), examples[`${id} ${status}`]),
      ]),
    ),
  }
}

const ENVELOPE = { 'application/json': errorEnvelopeSchema }

/** A limited route states its limits in every reply (CONTRACT 4.5). */
function withLimits({ limited }: Route, reply: ReplyDescription): ReplyDescription {
  if (limited !== true) return reply
  return { ...reply, headers: [...(reply.headers ?? []), 'RateLimit', 'RateLimit-Policy'] }
}

/** The errors of every route of its kind (CONTRACT 3). */
function generalReplies({ access, limited, path }: Route): Readonly<Record<string, ReplyDescription>> {
  return {
    ...(path.includes(':')
      ? { '400': { description: 'The path is not encoded correctly.', content: ENVELOPE } }
      : {}),
    ...(access === 'open'
      ? {}
      : {
          '401': {
            description: 'Credentials are missing, malformed, unknown, revoked or of the wrong kind.',
            headers: ['WWW-Authenticate'],
            content: ENVELOPE,
          },
        }),
    ...(limited === true
      ? {
          '429': {
            description: 'A rate limit is used up; `error.metadata.policy` names it.',
            headers: ['Retry-After'],
            content: ENVELOPE,
          },
        }
      : {}),
    '500': { description: 'Unexpected server error; the message holds a request id.', content: ENVELOPE },
  }
}

function describeReply({ description, headers = [], content }: ReplyDescription, example: unknown): Document {
  const names: readonly HeaderName[] = [...headers, 'X-Request-Id']
  return {
    description,
    headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(content === undefined
      ? {}
      : {
          content: Object.fromEntries(
            Object.entries(content).map(([mediaType, schema]) => [
              mediaType,
              {
                schema: schemaOf(schema),
                ...(mediaType === 'application/json' && example !== undefined ? { example } : {}),
              },
            ]),
          ),
        }),
  }
}

function schemaOf(schema: z.ZodType | 'binary' | 'text'): Document {
  if (schema === errorEnvelopeSchema) return { $ref: '#/components/schemas/ErrorEnvelope' }
  if (schema === 'binary') return { type: 'string', format: 'binary' }
  return schema === 'text' ? { type: 'string' } : jsonSchema(schema, 'output')
}
