/**
 * Records usage until its stdin ends, and prints the id of each acknowledged record. Argument: the data folder.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openUsageLog } from '../../../api/chat/records/usage-log.ts'
import { createLog } from '../../../api/process/log.ts'
import { usageRecord } from './usage-records.ts'

const [dataDir = ''] = process.argv.slice(2)
const options = { log: createLog('silent'), clock: () => new Date() }
const usage = await openUsageLog(dataDir, options)

process.stdin.resume()
while (!process.stdin.readableEnded) {
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const record = usageRecord()
      await usage.record(record)
      process.stdout.write(`${record.request_id}\n`)
    }),
  )
  await sleep(5)
}
await usage.close()
