/**
 * Entry point of the child process of one sync. Replies of directories are parsed here, under a memory limit, so that
 * they neither stall nor crash the service.
 */
import { openStore } from '../../store/open-store.ts'
import { SYNC_LIMITS } from '../directory/limits.ts'
import { SyncFailure } from '../failures.ts'
import { UNOBSERVED } from '../observer.ts'
import { toChildSchema, type FromChild, type ToChild } from './child-messages.ts'
import { runInProcess } from './run-in-process.ts'

const pauses = new Map<number, () => void>()
let pauseCount = 0

process.on('message', (message) => {
  const received = toChildSchema.parse(message)
  if (received.kind === 'task') void run(received)
  else pauses.get(received.pause)?.()
})

// Terminals and systemd signal all processes: the service ends its children itself.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined)
// The service is gone.
process.on('disconnect', () => process.exit(1))

async function run({
  store: settings,
  task,
  allowDeletions,
  memoryBytes,
}: ToChild & { kind: 'task' }): Promise<void> {
  try {
    const store = await openStore(settings, new Date())
    const options = {
      signal: new AbortController().signal,
      progress: () => undefined,
      allowDeletions,
      whilePausing,
    }
    const report = await runInProcess(task, options, {
      store,
      clock: () => new Date(),
      environment: process.env,
      limits: { ...SYNC_LIMITS, memoryBytes },
      observer: { ...UNOBSERVED, requestFinished: (outcome) => send({ kind: 'requested', outcome }) },
    })
    send({ kind: 'done', report })
    await store.close()
  } catch (error) {
    if (error instanceof SyncFailure) send({ kind: 'failed', failure: error.failure, detail: error.message })
    else
      send({
        kind: 'failed',
        failure: 'internal',
        detail: error instanceof Error ? String(error.stack) : String(error),
      })
  }
}

async function whilePausing<Result>(pause: () => Promise<Result>): Promise<Result> {
  const number = (pauseCount += 1)
  const goOn = new Promise<void>((resolve) => pauses.set(number, resolve))
  send({ kind: 'pause', pause: number })
  try {
    return await pause()
  } finally {
    send({ kind: 'paused', pause: number })
    await goOn
    pauses.delete(number)
  }
}

function send(message: FromChild): void {
  process.send?.(message)
}
