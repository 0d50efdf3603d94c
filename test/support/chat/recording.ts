/** A process that records usage, for tests that kill or hinder it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('recording-program.ts', import.meta.url))

interface Wanted {
  /** Command line of a program that starts it. */
  readonly behind?: readonly string[]
}

/** Starts it; it records until its stdin ends. `acknowledged` has the ids of acknowledged records. */
export function startRecording(dataDir: string, { behind = [] }: Wanted = {}) {
  const [program, ...args] = [...behind, process.execPath, PROGRAM, dataDir]
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const acknowledged: string[] = []
  const lines = createInterface({ input: child.stdout }).on('line', (line) => void acknowledged.push(line))
  return { child, acknowledged, ended: once(lines, 'close') }
}
