/** Random windows over HTTP beside ten lines of FastAPI with DuckDB: the processor time of both servers. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { addDays, daysBetween } from '../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { freePort } from '../../support/ports.ts'
import { startProcess } from '../../support/processes.ts'
import { randomFrom } from '../../support/random.ts'
import { LAST_DAY } from '../data.ts'
import { inTemporaryFolder, printTable, ratio, type Print } from '../measure.ts'
import { startService, untilAnswering } from '../servers.ts'
import { makeClient, RANKINGS } from './load.ts'

const PEER = fileURLToPath(new URL('peer.py', import.meta.url))

const replySchema = z.object({
  data: z.array(z.object({ app_id: z.number(), total_tokens: z.coerce.string() })),
})

/** How many windows over data of so many days. */
export type Windows = { readonly days: number; readonly windows: number }

/**
 * (e): prints the processor milliseconds of a reply, of windows that no cache has; both serve the same rows.
 * @param publish publishes a snapshot into a folder.
 */
export async function benchPeer(
  print: Print,
  publish: (dataDir: string) => Promise<unknown>,
  { days, windows }: Windows,
): Promise<void> {
  const python = join(process.env['PYTHON_PEER'] ?? '', 'bin', 'python')
  const packages = 'fastapi, uvicorn and duckdb (pip install)'
  if (!existsSync(python))
    return print(`e: left out, since PYTHON_PEER names no virtual environment with ${packages}`)
  await inTemporaryFolder(async (dataDir) => {
    await publish(dataDir)
    const ask = await makeClient(dataDir, 2 * SORTS.length * windows)
    await using service = await startService(dataDir)
    const port = await freePort()
    const file = join(dataDir, 'current', SNAPSHOT_FILE)
    const program = startProcess(python, [PEER, file, String(port)])
    await using peer = await untilAnswering(program, port)
    /** Rows of a reply, and the processor time of its server. */
    const measured = async (pid: number | undefined, url: string) => {
      const before = processorMs(pid)
      const reply = replySchema.parse(await ask(url))
      return { rows: JSON.stringify(reply), ms: processorMs(pid) - before }
    }
    const rows: string[][] = []
    for (const sort of SORTS) {
      let [spent, spentByPeer] = [0, 0]
      for (const window of randomWindows({ days, windows })) {
        const query = `sort=${sort}&${window}`
        const own = await measured(service.child.pid, `${service.origin}${RANKINGS}?${query}`)
        const others = await measured(peer.child.pid, `${peer.origin}/rankings?${query}`)
        if (own.rows !== others.rows) throw new Error(`The replies differ: ${query}`)
        spent += own.ms / windows
        spentByPeer += others.ms / windows
      }
      rows.push([sort, spent.toFixed(1), spentByPeer.toFixed(1), ratio(spent, spentByPeer)])
    }
    print(`\ne: ${windows} random windows of each order, uncached; processor milliseconds of a reply`)
    printTable(print, ['sort', 'service', 'FastAPI with DuckDB', 'ratio'], rows)
  })
}

/** Windows of up to 120 days, which end in the last three quarters of the data. */
export function randomWindows({ days, windows }: Windows): string[] {
  const random = randomFrom(7)
  return Array.from({ length: windows }, () => {
    const end = addDays(LAST_DAY, -Math.floor(random() * days * 0.75))
    const longest = Math.min(120, daysBetween(addDays(LAST_DAY, 1 - days), end))
    return `start_date=${addDays(end, -Math.floor(random() * longest))}&end_date=${end}`
  })
}

/** Milliseconds of processor time that a process has used; Linux counts hundredths of a second. */
function processorMs(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return 10 * (Number(fields[11]) + Number(fields[12]))
}
