/** The settings of the service, read once at start from the environment (CONTRACT 9). */
import { z } from 'zod'
import { oneOf, wholeNumber } from '../pipeline/program/options.ts'
import {
  DEFAULT_PORT,
  publicUrlSchema,
  scheduleSchema,
  readSettings as readTable,
  webAddressSchema,
} from '../pipeline/program/settings.ts'
import { KEY_BODIES_MIB } from './http/request-body.ts'
import { isDatabaseUrl } from './store/open-store.ts'

/** From most to least. */
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** Every setting with its check, its default and its description. */
export const SETTINGS = {
  DATA_DIR: z.string().default('data').describe('Folder of the data, relative to the working directory.'),
  DATABASE_URL: z
    .string()
    .refine(isDatabaseUrl, 'Expected postgres://USER:PASSWORD@HOST:PORT/DATABASE')
    .optional()
    .describe('PostgreSQL database of accounts, keys, limits, jobs and groups, instead of service.sqlite.'),
  PORT: wholeNumber(0, 65_535)
    .default(DEFAULT_PORT)
    .describe('TCP port the API listens on; 0 takes any free one.'),
  HOST: z
    .string()
    // Without brackets: IPv6 addresses are often copied from URLs.
    .transform((host) => host.replace(/^\[(.*)\]$/, '$1'))
    .default('127.0.0.1')
    .describe('Address the API listens on; 0.0.0.0 for all of them.'),
  PUBLIC_URL: publicUrlSchema
    .optional()
    .describe(
      'Public origin of the service; without it, the feed names the host of each request, descriptions of the data 127.0.0.1.',
    ),
  API_MEMORY: z
    .string()
    .regex(/^[1-9]\d{0,5} ?[MG]i?B$/i, 'Expected a size such as 1GB or 512MB')
    .default('1GB')
    .describe('Memory for queries of the API over all open snapshots, such as 1GB.'),
  LOG_LEVEL: oneOf(LOG_LEVELS)
    .default('info')
    .describe(`Level of the log on stderr: ${LOG_LEVELS.join(', ')}.`),
  NIGHTLY_SCHEDULE: scheduleSchema.describe('Start of the nightly run: a cron expression in UTC.'),
  SCIM_CONCURRENT_SYNCS: wholeNumber(1, 9999)
    .default(16)
    .describe('Directory syncs of different accounts at the same time.'),
  NOTICE_WEBHOOK: webAddressSchema
    .optional()
    .describe(
      'URL that gets a JSON notice when scheduled directory syncs fail, and when they succeed again.',
    ),
  SCIM_SYNC_MINUTES: wholeNumber(1, 9999)
    .default(30)
    .describe('Maximum time of one directory sync, in minutes.'),
  MODELS_FILE: z
    .string()
    .optional()
    .describe('Routing configuration of chat, a JSON file; without it there are no models.'),
  CHAT_BODY_MIB: wholeNumber(1, KEY_BODIES_MIB)
    .default(32)
    .describe('Maximum size of a chat request, in MiB.'),
} as const

export type Settings = ReturnType<typeof readSettings>

/** The settings of the service; see SETTINGS. */
export function readSettings(environment: NodeJS.ProcessEnv) {
  return readTable(SETTINGS, environment)
}
