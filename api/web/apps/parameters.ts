/** The parameters of the app pages. */
import type { Request } from 'express'
import { z } from 'zod'
import { PARAMETERS } from '../../datasets/rankings/parameters.ts'
import { ApiError } from '../../http/errors.ts'
import { badRequest, readParameters, type ParameterTable } from '../../http/protocol/query-parameters.ts'
import { queryString } from '../../http/respond.ts'
import { shorten } from '../../untrusted/shorten.ts'

/** Apps that one chart can distinguish. */
export const COMPARED_APPS = 5

const AS_OF = { as_of: PARAMETERS.as_of } as const

const SEARCH = {
  ...AS_OF,
  q: { schema: z.string().min(1).max(100), allowed: 'a part of the name of an app, at most 100 characters' },
} as const

const COMPARISON = {
  ...AS_OF,
  apps: {
    schema: z.string().regex(/^\d{1,19}(,\d{1,19}){1,4}$/),
    allowed: `the ids of 2 to ${COMPARED_APPS} apps, such as 1,2,3`,
  },
  scale: { schema: z.enum(['linear', 'log']), allowed: 'linear or log' },
} as const

export interface AppRequest {
  readonly id: string
  readonly parameters: { readonly as_of?: string }
}

/** Reads the app from the path. */
export function readAppRequest(request: Request): AppRequest {
  const id = request.params['app_id']
  if (typeof id !== 'string' || !/^\d{1,19}$/.test(id)) {
    throw new ApiError(404, `No app has the id ${shorten(String(id))}: ids are numbers, such as /apps/1`)
  }
  return { id, parameters: read(AS_OF, request) }
}

export interface SearchRequest {
  readonly parameters: { readonly as_of?: string; readonly q?: string }
}

/** Reads the search text. */
export function readSearchRequest(request: Request): SearchRequest {
  return { parameters: read(SEARCH, request) }
}

export interface ComparisonRequest {
  readonly parameters: { readonly as_of?: string; readonly apps?: string; readonly scale?: 'linear' | 'log' }
}

/** Reads the compared apps. */
export function readComparisonRequest(request: Request): ComparisonRequest {
  return { parameters: read(COMPARISON, request) }
}

function read(table: ParameterTable, request: Request): Readonly<Record<string, unknown>> {
  // Forms send every field, even empty ones.
  const filled = [...new URLSearchParams(queryString(request))].filter(([, value]) => value !== '')
  const { values, faults } = readParameters(table, new URLSearchParams(filled).toString())
  if (faults.length > 0) throw badRequest(faults)
  return values
}
