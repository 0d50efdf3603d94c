import { Session } from 'node:inspector/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** Frees what nobody in this process holds any more, DuckDB's objects included, as may happen at any moment. */
export async function collectGarbage(): Promise<void> {
  const session = new Session()
  session.connect()
  // What a promise still held is free after a turn of the event loop, and what is freed says so in another.
  for (let turn = 0; turn < 3; turn++) {
    await session.post('HeapProfiler.collectGarbage')
    await pause(10)
  }
  session.disconnect()
}
