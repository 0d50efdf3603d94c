/** The signals of long-running programs. */
import { isatty } from 'node:tty'

const STDIN = 0
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const

/**
 * Calls `stop` on the first SIGTERM or SIGINT. A second one ends the process at once. Terminals send SIGINT, and systemd
 * SIGTERM, to npm and to this process, and npm passes its own on: under npm the second signal is that echo, and does not
 * count.
 */
export function onStopSignal(stop: () => void): void {
  let left = process.env['npm_lifecycle_event'] ? 2 : 1
  let isStopping = false
  const listener = (signal: NodeJS.Signals) => {
    if (!isStopping) stop()
    isStopping = true
    if (left-- > 0) return
    for (const name of STOP_SIGNALS) process.off(name, listener)
    process.kill(process.pid, signal)
  }
  for (const signal of STOP_SIGNALS) process.on(signal, listener)
}

/** Calls `reload` on each SIGHUP. Exception: the one of a closed terminal counts as SIGTERM. */
export function onReloadSignal(reload: () => void): void {
  const inTerminal = isatty(STDIN)
  process.on('SIGHUP', () => {
    if (inTerminal && !isatty(STDIN)) process.kill(process.pid, 'SIGTERM')
    else reload()
  })
}
