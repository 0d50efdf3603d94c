/** Settings that the pipeline and the API share, and how both read their tables of settings. */
import { validate } from 'node-cron'
import { z } from 'zod'
import { explainTable, faultsOf, type Table } from './options.ts'
import { checkedValues } from './program.ts'

/** The port that the API listens on unless PORT names one. */
export const DEFAULT_PORT = 3000

/** Default of PUBLIC_URL: the service on its own machine. A port of 0 means any free one, and counts as not set. */
export function localUrl(port = DEFAULT_PORT): string {
  return `http://127.0.0.1:${port || DEFAULT_PORT}`
}

/** Start of the nightly run if NIGHTLY_SCHEDULE is not set: 02:00 UTC (cron form). */
const DEFAULT_SCHEDULE = '0 2 * * *'

/** NIGHTLY_SCHEDULE: the schedule follows it, and the API reports the next run from it. */
export const scheduleSchema = z
  .string()
  .refine((expression) => validate(expression), `Expected a cron expression such as "${DEFAULT_SCHEDULE}"`)
  .default(DEFAULT_SCHEDULE)

/** The URL of a receiver of notices. */
export const webAddressSchema = z.url({
  protocol: /^https?$/,
  error: 'Expected an address that begins with https:// or http://',
})

const ORIGIN_EXPECTED = 'Expected an origin such as https://example.com, without a path'

/** PUBLIC_URL, without a final slash, so that paths can be appended. */
export const publicUrlSchema = z
  .url({ protocol: /^https?$/, error: ORIGIN_EXPECTED })
  .transform((url) => new URL(url))
  .refine(({ href, origin }) => href === `${origin}/`, ORIGIN_EXPECTED)
  .transform(({ origin }) => origin)

type Environment = Readonly<Record<string, string | undefined>>

/** An empty variable counts as not set. */
function notEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
}

/** The faults of the settings by name, a sentence each, which begins with it. */
export function settingFaults(table: Table, environment: Environment): Map<string, string> {
  return faultsOf(table, notEmpty(environment))
}

/**
 * The checked settings of a table.
 * @throws UsageError that lists every fault.
 */
export function readSettings<Settings extends z.core.$ZodShape>(table: Settings, environment: Environment) {
  return checkedValues(table, notEmpty(environment))
}

/** The settings of a table as the end of a help. */
export function settingsHelp(table: Table): string {
  return `Settings (environment):\n${explainTable(table)}`
}
