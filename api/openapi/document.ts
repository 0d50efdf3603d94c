/** The OpenAPI 3.1 document, built from the route table and the validation schemas (CONTRACT 4.6). */
import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi'
import { COMPARABILITY_NOTE, LICENCE } from '../../pipeline/contract/dataset.ts'
import { VERSION } from '../../pipeline/contract/version.ts'
import type { ParameterTable } from '../http/query-parameters.ts'
import type { Route } from '../http/route.ts'
import { fault, HEADERS, TAGS, type Operation, type ReplyDescription } from './operation.ts'
import { adaptSchema } from './schema.ts'

const DESCRIPTION = `Which apps use large language models, by how much, and which are growing: a public dataset (CC BY 4.0) with
versioned snapshots. Reuse requires attribution to the publisher, stating the \`meta.as_of\` time.
${COMPARABILITY_NOTE}

Errors that precede every operation have the same body: 400 (invalid HTTP, or an address that is not encoded correctly), 404 (no such path), 405 (\`Allow\` lists the methods), 408 (the request did not arrive in time), 431 (the request line and headers are too large).`

const KEYS =
  'An API key, made with `npm run keys`: of kind inference for chat, of kind management for directory sync, of either for the rankings.'

/** Builds the document of all described routes; schemas with a name stand among its components. */
export function openApiDocument(routes: readonly Route[]): object {
  const paths: ZodOpenApiPathsObject = {}
  for (const route of routes) {
    if (route.operation === undefined) continue
    const path = route.path.replaceAll(/:([a-z_]+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route, route.operation) }
  }
  return createDocument(
    {
      openapi: '3.1.1',
      info: {
        title: 'App rankings',
        version: VERSION,
        description: DESCRIPTION,
        license: { name: 'CC BY 4.0 (data)', url: LICENCE.url },
      },
      servers: [{ url: '/', description: 'This service' }],
      security: [],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      paths,
      components: {
        securitySchemes: { key: { type: 'http', scheme: 'bearer', description: KEYS } },
        headers: HEADERS,
      },
    },
    {
      override: adaptSchema,
      allowEmptySchema: { custom: true, union: true, nullable: true, optional: true },
    },
  )
}

function describe(route: Route, operation: Operation): ZodOpenApiOperationObject {
  const { id, tag, query, path, body, replies, ...texts } = operation
  const all = Object.entries({ ...generalReplies(route), ...replies })
  return {
    operationId: id,
    tags: [tag],
    ...texts,
    ...(route.access !== 'open' && { security: [{ key: [] }] }),
    requestParams: {
      ...(path !== undefined && { path: z.object(path) }),
      ...(query !== undefined && { query: querySchema(query) }),
    },
    ...(body !== undefined && {
      requestBody: { required: true, content: { 'application/json': { schema: body } } },
    }),
    responses: Object.fromEntries(all.map(([status, reply]) => [status, describeReply(route, reply)])),
  }
}

/** The schema of a query string; each parameter has its description from its own schema. */
function querySchema(table: ParameterTable) {
  const fields = Object.entries(table).map(([name, { schema, isList, default: fallback }]) => {
    const meta = { description: schema.description, ...(fallback !== undefined && { default: fallback }) }
    return [name, (isList ? schema : schema.optional()).meta(meta)] as const
  })
  return z.object(Object.fromEntries(fields))
}

/** The errors of every route of its kind (CONTRACT 3). */
function generalReplies({ access, limited }: Route): Operation['replies'] {
  return {
    ...(access !== 'open' && {
      '401': fault('Credentials are missing, malformed, unknown, revoked or of the wrong kind.', [
        'WWW-Authenticate',
      ]),
    }),
    ...(limited === true && {
      '429': fault('A rate limit is used up; `error.metadata.policy` names it.', ['Retry-After']),
    }),
    '500': fault('Unexpected server error; the message holds a request id.'),
  }
}

function describeReply(
  { limited }: Route,
  { description, headers = [], content }: ReplyDescription,
): ZodOpenApiResponseObject {
  // A limited route states its limits in every reply (CONTRACT 4.5).
  const limits = limited === true ? (['RateLimit', 'RateLimit-Policy'] as const) : []
  const names = [...headers, ...limits, 'X-Request-Id']
  const bodies = Object.entries(content ?? {}).map(([mediaType, schema]) => [mediaType, { schema }])
  return {
    description,
    headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(content !== undefined && { content: Object.fromEntries(bodies) }),
  }
}
