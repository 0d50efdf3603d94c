/** The settings of the pipeline: one table, checked once, all faults reported together (CONTRACT 9). */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { NEW_APP_VISIBILITIES } from './contract/app-identity.ts'
import { RAW_FOLDER } from './contract/files.ts'
import { oneOf, wholeNumber } from './program/options.ts'
import { UsageError } from './program/program.ts'
import {
  localUrl,
  publicUrlSchema,
  readSettings,
  scheduleSchema,
  webAddressSchema,
} from './program/settings.ts'
import { CLUSTER_FORM, parseClusterAddress } from './sources/clickhouse.ts'

/** DuckDB's share of the memory of a run. */
const DUCKDB_SHARE = 0.7

/** A size, in thousands or in powers of two. */
const SIZE = /^\d{1,6}(\.\d{1,6})? ?[MGT]i?B$/

function text(form: RegExp, expected: string) {
  return z.string().regex(form, { error: expected, abort: true })
}

/** A number as decimal text, so that thresholds are compared exactly. */
const positiveDecimal = text(/^\d{1,9}(\.\d{1,9})?$/, 'Expected a number such as 0.5').refine(
  (number) => Number(number) > 0,
  'Expected more than 0',
)

/** Every environment variable the pipeline reads, with its default and its meaning. */
export const PIPELINE_SETTINGS = {
  DATA_DIR: z
    .string()
    // DuckDB reads what follows a `?` as options.
    .refine((path) => !resolve(path).includes('?'), 'Expected a path without "?"')
    .prefault('data')
    .describe('Folder of the raw input, the warehouse and the snapshots.'),
  USAGE_SOURCE: z
    .string()
    .refine((address) => address === 'files' || parseClusterAddress(address) !== undefined, {
      error: `Expected files, or ${CLUSTER_FORM}`,
    })
    .default('files')
    .describe(
      'Where a run finds usage: files alone, or also a ClickHouse cluster, pulled into the drop folder.',
    ),
  USAGE_SOURCE_USER: z.string().optional().describe('User of the cluster, if USAGE_SOURCE names none.'),
  USAGE_SOURCE_PASSWORD: z.string().optional().describe('Password of that user, if USAGE_SOURCE has none.'),
  NEW_APPS: oneOf(NEW_APP_VISIBILITIES)
    .default('public')
    .describe('Whether apps that are named for the first time are published: public or hidden.'),
  NEW_APPS_PER_ACCOUNT: wholeNumber(1, 999_999_999)
    .default(100)
    .describe('Most apps that one account may name for the first time on a UTC day.'),
  PIPELINE_MEMORY: text(SIZE, 'Expected a size such as 2GB or 512MiB')
    .default('2GB')
    .describe('Memory that a run may use; it spills the rest to disk.'),
  PIPELINE_SPILL: text(SIZE, 'Expected a size such as 20GB or 512MiB')
    .optional()
    .describe('Most disk space that a run may spill to; default: nine tenths of the free space.'),
  RETENTION_DAYS: wholeNumber(1, 99_999)
    .optional()
    .describe(
      'Each successful run removes snapshots older than this many days, as prune does; not set: none.',
    ),
  NIGHTLY_SCHEDULE: scheduleSchema.describe(
    'When npm run schedule starts the nightly run: a cron expression in UTC.',
  ),
  PUBLISHER: text(/^[^\p{Cc}\u2028\u2029]*\S[^\p{Cc}\u2028\u2029]*$/u, 'Expected a name in one line')
    .default('App Rankings')
    .describe('Publisher named in the attribution line.'),
  PUBLIC_URL: publicUrlSchema
    .optional()
    .describe(
      'Public origin of the service, named in the files of a snapshot; default: this machine, whatever PORT is, so that the port decides no snapshot.',
    ),
  GATE_VOLUME_LOW: positiveDecimal
    .refine((number) => Number(number) < 1, 'Expected less than 1')
    .default('0.5')
    .describe('A new day below this multiple of the median of its weekday is blocked.'),
  GATE_VOLUME_HIGH: positiveDecimal
    .refine((number) => Number(number) > 1, 'Expected more than 1')
    .default('5')
    .describe('A new day above this multiple of the median of its weekday is blocked.'),
  GATE_ROWS_LOST: positiveDecimal
    .default('10')
    .describe('A snapshot that loses more than this percentage of the published rows is blocked.'),
  NOTICE_WEBHOOK: webAddressSchema
    .optional()
    .describe(
      'URL that receives a JSON notice when a run fails, is blocked, restates history or lacks data of the last day.',
    ),
  SUCCESS_PING: webAddressSchema
    .optional()
    .describe("URL called after each successful run (dead-man's switch)."),
} as const

/** The checked settings of a run; the table above explains each. */
export type Config = Readonly<ReturnType<typeof readConfig>>

/**
 * The checked settings; an empty variable counts as not set.
 * @throws UsageError that lists every fault.
 */
export function readConfig(environment: NodeJS.ProcessEnv) {
  const data = readSettings(PIPELINE_SETTINGS, environment)
  return {
    dataDir: resolve(data.DATA_DIR),
    usageSource: parseClusterAddress(data.USAGE_SOURCE, data.USAGE_SOURCE_USER, data.USAGE_SOURCE_PASSWORD),
    newApps: data.NEW_APPS,
    newAppsPerAccount: data.NEW_APPS_PER_ACCOUNT,
    /** DuckDB's memory limit, such as `1.4GB`: large sorts exceed it, and Node needs memory too. */
    memory: data.PIPELINE_MEMORY.replace(/^[\d.]+/, (amount) => String(Number(amount) * DUCKDB_SHARE)),
    spill: data.PIPELINE_SPILL,
    retentionDays: data.RETENTION_DAYS,
    schedule: data.NIGHTLY_SCHEDULE,
    publisher: data.PUBLISHER,
    publicUrl: data.PUBLIC_URL ?? localUrl(),
    /** Decimal texts: the variables of gate.sql. */
    gates: {
      volume_low: data.GATE_VOLUME_LOW,
      volume_high: data.GATE_VOLUME_HIGH,
      rows_lost: data.GATE_ROWS_LOST,
    },
    webhook: data.NOTICE_WEBHOOK,
    successPing: data.SUCCESS_PING,
  }
}

/** @throws UsageError when DATA_DIR is no folder: it is mistyped, or its disk is missing. */
export function refuseMissing({ dataDir }: Pick<Config, 'dataDir'>): void {
  if (statSync(dataDir, { throwIfNoEntry: false })?.isDirectory() === true) return
  throw new UsageError(
    `There is no folder ${dataDir}: create it, mount its disk, or set DATA_DIR to the folder that holds ${RAW_FOLDER}/`,
  )
}

/** @throws UsageError when a run would find no DATA_DIR. One that pulls its input from a cluster makes it. */
export function refuseWithoutInput(config: Pick<Config, 'dataDir' | 'usageSource'>): void {
  if (config.usageSource === undefined) refuseMissing(config)
}
