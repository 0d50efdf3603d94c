/** The options of `npm run directories set`: checked before anything is opened, then combined with the connection. */
import { resolve } from 'node:path'
import { validate } from 'node-cron'
import { z } from 'zod'
import { oneOf, option, wholeNumber } from '../../pipeline/program/options.ts'
import { UsageError } from '../../pipeline/program/program.ts'
import { cronSchedule } from '../process/cron-schedule.ts'
import { MEMBER_MODES, NEW_CONNECTION, type ConnectionSettings } from '../scim/connections.ts'

type Settings = Partial<ConnectionSettings>

const PATH_EXPECTED = 'Expected an address that ends with its path: remove everything from ? or # on'
const addressSchema = z
  .url({ protocol: /^https?$/, normalize: true, error: 'Expected https://HOST/PATH' })
  .refine(
    (address) => !hasSecret(URL.parse(address)),
    'Expected no user, password or secret: put them into the token instead',
  )
  .refine((address) => !address.includes('#'), PATH_EXPECTED)
const directorySchema = addressSchema
  .refine((address) => !address.includes('?'), PATH_EXPECTED)
  .refine(
    (address) => !/\/Groups\/?$/i.test(address),
    'Expected no /Groups at the end, which a sync adds itself',
  )

/** Whether an address has a user, a password or a secret, in whatever encoding. */
function hasSecret(url: URL | null): boolean {
  return url !== null && (url.username + url.password !== '' || url.searchParams.has('client_secret'))
}

/** A word longer than names have, or than names with digits have, is more likely a token. */
const VARIABLE = /^(?!.*[a-z]{25})(?!.*(?=[a-z0-9]{13})[a-z]*\d)[a-z_]\w*$/i

const variableSchema = z
  .string()
  .regex(
    VARIABLE,
    'Expected the name of an environment variable, such as ACME_SCIM_TOKEN, but the value is none or looks like a token: ' +
      'put it into a variable, and pass the name of that',
  )

const pathSchema = z
  .string()
  .min(1, 'Expected PATH')
  .transform((path) => resolve(path))

const SCHEDULE_EXPECTED = 'Expected a cron expression in UTC, such as "0 * * * *", or off'
/** A schedule with its next time. */
const scheduleSchema = z
  .string()
  .transform((expression, context): Pick<ConnectionSettings, 'schedule' | 'next_sync_at'> => {
    if (expression === 'off') return { schedule: null, next_sync_at: null }
    const first = validate(expression) ? cronSchedule(expression).next(new Date()) : undefined
    if (first === undefined) context.addIssue(SCHEDULE_EXPECTED)
    return { schedule: expression, next_sync_at: first?.toISOString() ?? null }
  })

/** A permission that stays until it is reverted, as 0 or 1. */
function allowed(what: string) {
  return z.boolean().transform(Number).optional().describe(`allows ${what}; --no-… reverts it`)
}

export const SET_OPTIONS = {
  url: option('URL', 'the address of the directory, which /Groups follows', directorySchema),
  'token-env': option('VARIABLE', 'the variable of the service that holds the token', variableSchema),
  'token-file': option('PATH', 'a file with mode 0600 that holds the token', pathSchema),
  'token-url': option(
    'URL',
    'where a sync requests its token (OAuth), with ?scope=… if that needs one',
    addressSchema,
  ),
  'client-id': option('ID', 'the OAuth client', z.string().min(1, 'Expected ID')),
  'client-secret-env': option('VARIABLE', 'the variable that holds the secret of the client', variableSchema),
  'client-secret-file': option('PATH', 'a file with mode 0600 that holds it', pathSchema),
  members: option(
    MEMBER_MODES.join('|'),
    'from the list (default), a request per group, or none',
    oneOf(MEMBER_MODES),
  ),
  schedule: option('CRON|off', 'also syncs at these times, in UTC', scheduleSchema),
  'gate-groups': option('N', 'this many groups may always be removed (default: 5)', wholeNumber(0, 100_000)),
  'gate-members': option(
    'N',
    'this many members may always be removed (default: 50)',
    wholeNumber(0, 500_000),
  ),
  'gate-percent': option('N', 'beyond them, this percentage may be (default: 20)', wholeNumber(0, 100)),
  'allow-private': allowed('a private network, and this machine'),
  'allow-loopback': allowed('this machine, by http too'),
}
type Given = Readonly<z.output<z.ZodObject<typeof SET_OPTIONS>>>

/**
 * The settings in the options of `set`, without those that are not given.
 * @throws UsageError if the options for the token do not go together.
 */
export function settingsIn({ schedule, ...given }: Given): Settings {
  const named = Object.entries(given).filter(([, value]) => value !== undefined)
  const settings = named.map(([name, value]) => [name.replaceAll('-', '_'), value] as const)
  return { ...Object.fromEntries(settings), ...schedule, ...tokenIn(given) }
}

/** How the options that name a token go together. */
const TOKEN = /^(?:token|token-url client-id client-secret)-(env|file)$/

/** Where a sync finds its token, or the secret of the client that requests one. */
function tokenIn(given: Omit<Given, 'schedule'>): Settings {
  const named = Object.entries(given).filter(
    ([name, value]) => /^(?:token|client)-/.test(name) && value !== undefined,
  )
  if (named.length === 0) return {}
  const [, kind] = TOKEN.exec(named.map(([name]) => name).join(' ')) ?? []
  if (kind === undefined)
    throw new UsageError(
      'Use either --token-env VARIABLE, or --token-file PATH, or --token-url URL with --client-id ID and either ' +
        '--client-secret-env VARIABLE or --client-secret-file PATH',
    )
  return {
    token_url: given['token-url'] ?? null,
    client_id: given['client-id'] ?? null,
    token_kind: kind === 'env' ? kind : 'file',
    token_source: String(named.at(-1)?.[1]),
  }
}

/**
 * The connection with these settings; what is not given stays as it is.
 * @throws UsageError if something is missing.
 */
export function combineSettings(given: Settings, former: ConnectionSettings | undefined): ConnectionSettings {
  const { url, token_kind, token_source, ...rest } = { ...NEW_CONNECTION, ...former, ...given }
  if (url === undefined) throw new UsageError('The address is missing: use --url https://HOST/PATH')
  if (token_kind === undefined || token_source === undefined)
    throw new UsageError(
      'The token is missing: use --token-env VARIABLE, --token-file PATH or --token-url URL',
    )
  return { ...rest, url, token_kind, token_source }
}
