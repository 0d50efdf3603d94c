/** A process of its own that records usage, to be killed or hindered. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ClickHouseAddress } from '../../pipeline/contract/clickhouse-address.ts'

const PROGRAM = fileURLToPath(new URL('recording-program.ts', import.meta.url))

interface Wanted {
  /** The cluster that it inserts into; without one it writes into the drop folder. */
  readonly cluster?: ClickHouseAddress
  /** The words of another program that starts it. */
  readonly behind?: readonly string[]
}

/** Starts it; it records until its stdin ends. `acknowledged` are the ids of the records that were. */
export function startRecording(dataDir: string, { cluster, behind = [] }: Wanted = {}) {
  const node = [
    process.execPath,
    PROGRAM,
    dataDir,
    ...(cluster === undefined ? [] : [JSON.stringify(cluster)]),
  ]
  const [program = '', ...args] = [...behind, ...node]
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const acknowledged: string[] = []
  const lines = createInterface({ input: child.stdout }).on('line', (line) => void acknowledged.push(line))
  return { child, acknowledged, ended: once(lines, 'close') }
}
