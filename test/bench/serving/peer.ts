/** Random windows over HTTP beside ten lines of FastAPI with DuckDB: the processor time of both servers. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { addDays, daysBetween } from '../../../pipeline/contract/calendar.ts'
import { SORTS, type Sort } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { freePort } from '../../support/ports.ts'
import { randomFrom } from '../../support/random.ts'
import { inTemporaryFolder, printTable, ratio, type Print } from '../measure.ts'
import { startService, stop, untilAnswering } from '../servers.ts'
import { makeKeys } from './http.ts'
import { LAST_DAY } from './data.ts'

const PEER = fileURLToPath(new URL('peer.py', import.meta.url))
const REQUESTS_PER_KEY = 20

/** A server: its process, and the address of a window. */
interface Server {
  readonly pid: number | undefined
  readonly address: (sort: Sort, start: string, end: string) => string
}

const replySchema = z.object({
  data: z.array(z.object({ app_id: z.number(), total_tokens: z.coerce.string() })),
})

/**
 * (f): prints the processor milliseconds of a reply, of windows that no cache has.
 * @param publish publishes a snapshot into a folder.
 * @param days the days of its data.
 */
export async function benchPeer(
  print: Print,
  publish: (dataDir: string) => Promise<unknown>,
  { days, windows }: { readonly days: number; readonly windows: number },
): Promise<void> {
  const python = join(process.env['PYTHON_PEER'] ?? '', 'bin', 'python')
  if (!existsSync(python)) {
    print(
      'f: left out, since PYTHON_PEER names no virtual environment with fastapi, uvicorn and duckdb (pip install)',
    )
    return
  }
  await inTemporaryFolder(async (dataDir) => {
    await publish(dataDir)
    const keys = await makeKeys(dataDir, Math.ceil((2 * SORTS.length * windows) / REQUESTS_PER_KEY))
    await using service = await startService(dataDir)
    const port = await freePort()
    const child = spawn(python, [PEER, join(dataDir, 'current', SNAPSHOT_FILE), String(port)], {
      stdio: 'inherit',
    })
    try {
      await untilAnswering(`http://127.0.0.1:${port}/docs`, child)
      const query = (sort: Sort, start: string, end: string) =>
        `sort=${sort}&start_date=${start}&end_date=${end}`
      const ours: Server = {
        pid: service.child.pid,
        address: (...window) => `${service.origin}/api/v1/datasets/app-rankings?${query(...window)}`,
      }
      const theirs: Server = {
        pid: child.pid,
        address: (...window) => `http://127.0.0.1:${port}/rankings?${query(...window)}`,
      }
      const rows: string[][] = []
      for (const sort of SORTS) {
        const spent = await measureWindows([ours, theirs], { sort, days, windows, keys })
        rows.push([sort, ...spent.map((ms) => ms.toFixed(1)), ratio(spent[0] ?? 0, spent[1] ?? 0)])
      }
      print(`\nf: ${windows} random windows of each order, uncached; processor milliseconds of a reply`)
      printTable(print, ['sort', 'service', 'FastAPI with DuckDB', 'ratio'], rows)
    } finally {
      await stop(child)
    }
  })
}

/** Requests the same windows from both in turns, and compares the rows. */
async function measureWindows(
  [ours, theirs]: readonly [Server, Server],
  {
    sort,
    days,
    windows,
    keys,
  }: { readonly sort: Sort; readonly days: number; readonly windows: number; readonly keys: string[] },
): Promise<readonly [number, number]> {
  const random = randomFrom(7)
  const spent: [number, number] = [0, 0]
  for (let index = 0; index < windows; index += 1) {
    const end = addDays(LAST_DAY, -Math.floor(random() * days * 0.75))
    const longest = Math.min(120, daysBetween(addDays(LAST_DAY, 1 - days), end))
    const start = addDays(end, -Math.floor(random() * longest))
    const key = keys[Math.floor((SORTS.indexOf(sort) * windows + index) / REQUESTS_PER_KEY)]
    const replies = []
    for (const [which, server] of [ours, theirs].entries()) {
      const before = processorMs(server.pid)
      const reply = await fetch(server.address(sort, start, end), {
        headers: { authorization: `Bearer ${key}` },
      })
      replies.push(replySchema.parse(await reply.json()).data)
      if (which === 0) spent[0] += processorMs(server.pid) - before
      else spent[1] += processorMs(server.pid) - before
    }
    if (JSON.stringify(replies[0]) !== JSON.stringify(replies[1])) {
      throw new Error(`The replies differ: ${sort}, ${start} to ${end}`)
    }
  }
  return [spent[0] / windows, spent[1] / windows]
}

/** Milliseconds of processor time that a process has used; Linux counts hundredths of a second. */
function processorMs(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return 10 * (Number(fields[11]) + Number(fields[12]))
}
