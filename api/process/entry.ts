/** The signals of the entry points. */
import { isatty } from 'node:tty'

const STDIN = 0
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const
/** npm passes a signal on within milliseconds; a person takes longer to send a second one. */
const ECHO_MS = 1000

/**
 * Calls `stop` on the first SIGTERM or SIGINT. A second one ends the process at once. Terminals send SIGINT, and
 * systemd SIGTERM, to npm and to this process, and npm passes its own on. Under npm this echo does not count as a
 * second signal. A signal to npm alone arrives at once and once.
 */
export function onStopSignal(stop: () => void): void {
  let echoes = process.env['npm_lifecycle_event'] ? 1 : 0
  let stoppedAt: number | undefined
  const listener = (signal: NodeJS.Signals) => {
    if (stoppedAt === undefined) {
      stoppedAt = performance.now()
      return stop()
    }
    const mayBeEcho = signal === 'SIGINT' || performance.now() - stoppedAt < ECHO_MS
    if (mayBeEcho && echoes-- > 0) return
    for (const name of STOP_SIGNALS) process.off(name, listener)
    process.kill(process.pid, signal)
  }
  for (const signal of STOP_SIGNALS) process.on(signal, listener)
}

/** Aborts on the first SIGTERM or SIGINT, as `onStopSignal`: listened for from the start, before others can hear of it. */
export function stopSignal(): AbortSignal {
  const stopping = new AbortController()
  onStopSignal(() => stopping.abort())
  return stopping.signal
}

/** Calls `reload` on each SIGHUP. Exception: the one of a closed terminal counts as SIGTERM. */
export function onReloadSignal(reload: () => void): void {
  const inTerminal = isatty(STDIN)
  process.on('SIGHUP', () => {
    if (inTerminal && !isatty(STDIN)) process.kill(process.pid, 'SIGTERM')
    else reload()
  })
}
