/** On SIGTERM or SIGINT calls `lastWord`; the process then ends by the same signal, so that its parent sees it. */
export function onStopSignal(lastWord: (signal: NodeJS.Signals) => void): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      lastWord(signal)
      process.kill(process.pid, signal)
    })
  }
}
