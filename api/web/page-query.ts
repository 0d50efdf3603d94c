/** What a visitor asks of the page: the parameters of the API, and `days` for a window that moves with the data. */
import { addDays } from '../../pipeline/contract.ts'
import { parseParameters, type Parameters } from '../datasets/parameters.ts'
import { badRequest } from '../http/query-parameters.ts'

/** Windows the page offers, in days. */
export const WINDOWS = [1, 7, 30, 90, 365] as const

const DEFAULT_DAYS = 30

export interface PageParameters {
  readonly parameters: Parameters
  /** Set when the window is given in days. */
  readonly days: number | undefined
}

/**
 * Reads the query string of the page.
 * @throws {ApiError} 400 that lists every fault.
 */
export function parsePageParameters(query: string): PageParameters {
  const sent = new URLSearchParams(query)
  const days = sent.getAll('days')
  sent.delete('days')
  // A form sends every field, also those the visitor left alone.
  const filled = new URLSearchParams([...sent].filter(([, value]) => value !== ''))
  const parameters = parseParameters(filled.toString())
  const dated = parameters.start_date !== undefined || parameters.end_date !== undefined
  return { parameters, days: readDays(days) ?? (dated ? undefined : DEFAULT_DAYS) }
}

/** The same parameters with the window as dates. */
export function withWindow({ parameters, days }: PageParameters, dataThrough: string): Parameters {
  if (days === undefined) return parameters
  const end = parameters.end_date ?? dataThrough
  return { ...parameters, start_date: addDays(end < dataThrough ? end : dataThrough, 1 - days) }
}

function readDays(values: readonly string[]): number | undefined {
  const [first = ''] = values
  if (values.length === 0 || first === '') return undefined
  const days = WINDOWS.find((each) => String(each) === first)
  if (days !== undefined && values.length === 1) return days
  const allowed = `one of ${WINDOWS.join(', ')}, given once`
  throw badRequest([
    { parameter: 'days', problem: 'invalid', sent: values.join(', ').slice(0, 100), allowed },
  ])
}
