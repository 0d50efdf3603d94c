/** A thread that moves what stands in the log of an SQLite file to its place in the file, whenever it is asked to. */
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

/** Pages of the log from which on it is begun anew: writers wait for that, but only for what came meanwhile. */
const LONG_LOG_PAGES = 4000
const BUSY_TIMEOUT_MS = 1000

// The path of the file.
const database = new DatabaseSync(String(workerData), { timeout: BUSY_TIMEOUT_MS })
const move = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
const moveAndBeginAnew = database.prepare('PRAGMA wal_checkpoint(RESTART)')

function checkpoint(): void {
  const log = Number(move.get()?.['log'])
  if (log >= LONG_LOG_PAGES) moveAndBeginAnew.get()
}

parentPort?.on('message', (wanted: 'checkpoint' | 'end') => {
  if (wanted === 'end') {
    database.close()
    parentPort?.close()
    return
  }
  try {
    checkpoint()
  } catch {
    // The log is as good as it was; the next time it is tried again.
  }
  parentPort?.postMessage('done')
})
