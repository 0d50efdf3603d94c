/** Random windows over HTTP beside ten lines of FastAPI with DuckDB: the processor time of both servers. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { addDays, daysBetween } from '../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { freePort } from '../../support/ports.ts'
import { randomFrom } from '../../support/random.ts'
import { inTemporaryFolder, printTable, ratio, type Print } from '../measure.ts'
import { startService, untilAnswering } from '../servers.ts'
import { REQUESTS_PER_KEY } from '../wrk.ts'
import { makeKeys } from './http.ts'
import { LAST_DAY } from './data.ts'

const PEER = fileURLToPath(new URL('peer.py', import.meta.url))

const replySchema = z.object({
  data: z.array(z.object({ app_id: z.number(), total_tokens: z.coerce.string() })),
})

interface Windows {
  /** Days of the data. */
  readonly days: number
  readonly windows: number
}

/**
 * (f): prints the processor milliseconds of a reply, of windows that no cache has; both serve the same rows.
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
    return print(`f: left out, since PYTHON_PEER names no virtual environment with ${packages}`)
  await inTemporaryFolder(async (dataDir) => {
    await publish(dataDir)
    const keys = await makeKeys(dataDir, Math.ceil((SORTS.length * windows) / REQUESTS_PER_KEY))
    await using service = await startService(dataDir)
    const port = await freePort()
    const file = join(dataDir, 'current', SNAPSHOT_FILE)
    const child = spawn(python, [PEER, file, String(port)], { stdio: 'inherit' })
    await using peer = await untilAnswering(child, `http://127.0.0.1:${port}`)
    const servers = [
      { pid: service.child.pid, path: `${service.origin}/api/v1/datasets/app-rankings` },
      { pid: child.pid, path: `${peer.origin}/rankings` },
    ]
    const rows: string[][] = []
    let asked = 0
    for (const sort of SORTS) {
      const spent = servers.map(() => 0)
      for (const window of randomWindows({ days, windows })) {
        const headers = { authorization: `Bearer ${keys[Math.floor(asked++ / REQUESTS_PER_KEY)]}` }
        const replies: string[] = []
        for (const [which, { pid, path }] of servers.entries()) {
          const before = processorMs(pid)
          const reply = await fetch(`${path}?sort=${sort}&${window}`, { headers })
          replies.push(JSON.stringify(replySchema.parse(await reply.json())))
          spent[which] = (spent[which] ?? 0) + processorMs(pid) - before
        }
        if (replies[0] !== replies[1]) throw new Error(`The replies differ: ${sort}, ${window}`)
      }
      const [ours = 0, theirs = 0] = spent.map((ms) => ms / windows)
      rows.push([sort, ours.toFixed(1), theirs.toFixed(1), ratio(ours, theirs)])
    }
    print(`\nf: ${windows} random windows of each order, uncached; processor milliseconds of a reply`)
    printTable(print, ['sort', 'service', 'FastAPI with DuckDB', 'ratio'], rows)
  })
}

/** Windows of up to 120 days, which end in the last three quarters of the data. */
function randomWindows({ days, windows }: Windows): string[] {
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
