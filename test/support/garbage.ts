import { Session } from 'node:inspector/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** Runs the garbage collector, which also frees DuckDB's unused objects. */
export async function collectGarbage(): Promise<void> {
  const session = new Session()
  session.connect()
  // Promises release objects after one turn of the event loop; finalizers run in another.
  for (let turn = 0; turn < 3; turn++) {
    await session.post('HeapProfiler.collectGarbage')
    await pause(10)
  }
  session.disconnect()
}
