/** What the entry files share: how a process ends. */
import { OperatorError } from './errors.ts'

/** Exit code for wrong usage or a start that failed (CONTRACT 9). */
export const EXIT_USAGE = 2

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const

/**
 * Calls `stop` on the first SIGTERM or SIGINT. From then on the signals have their usual effect, so a second one
 * ends the process at once.
 */
export function onStopSignal(stop: () => void): void {
  const first = () => {
    for (const signal of STOP_SIGNALS) process.off(signal, first)
    stop()
  }
  for (const signal of STOP_SIGNALS) process.on(signal, first)
}

/** Calls `reload` on each SIGHUP. */
export function onReloadSignal(reload: () => void): void {
  process.on('SIGHUP', reload)
}

/** What to print of a failure: the sentence alone where the operator can put it right, all of it otherwise. */
export function failureText(error: unknown): string {
  if (error instanceof OperatorError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
