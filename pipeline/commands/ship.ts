/** `ship`: inserts chat's usage records into the ClickHouse cluster. */
import { UsageError, parseCommandLine } from '../program/program.ts'
import { pluralize } from '../program/terminal.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command } from './command.ts'

export const ship: Command = {
  usage: 'ship [--json]',
  summary:
    "inserts chat's usage records into the cluster that USAGE_SOURCE names; a run does so first, other API machines need their own schedule",
  prepare(args) {
    const { values } = parseCommandLine({ args, options: JSON_OPTION })
    return async (dependencies) => {
      const { dataDir, usageSource } = dependencies.config
      if (usageSource === undefined) {
        throw new UsageError(
          'USAGE_SOURCE names no cluster, so runs read the usage records as files: there is nothing to ship',
        )
      }
      // Loads the cluster's client only for installations with a cluster.
      const { shipRecords } = await import('../sources/clickhouse/ship.ts')
      const shipped = await shipRecords(dataDir, usageSource)
      printResult(dependencies, values.json, shipped, [
        `${pluralize(shipped.records, 'usage record')} of ${pluralize(shipped.files, 'file')} shipped` +
          (shipped.torn === 0
            ? ''
            : `, ${pluralize(shipped.torn, 'line')} without a record kept in _torn- files`),
      ])
    }
  },
}
