/** Shows the progress of a run on stderr: a line per stage, and on a terminal how far the present one is. */
import { printable } from '../program/terminal.ts'

/** Where to write; process.stderr is an example. */
export type Output = { write(text: string): unknown; readonly isTTY?: boolean }

export type Progress = {
  /** Progress inside a stage, `done` of `total` steps; shown on a terminal only. */
  step(stage: string, done: number, total: number): void
  /** Ends a stage that took `ms` milliseconds. */
  finished(stage: string, summary: string, ms: number): void
  /** Writes a message. */
  note(text: string): void
}

const STAGE_WIDTH = 8
const CLEAR_LINE = '\r\u001B[2K'

export function createProgress(output: Output): Progress {
  const terminal = output.isTTY === true
  const clear = terminal ? CLEAR_LINE : ''
  return {
    step(stage, done, total) {
      if (terminal) output.write(`${clear}${stage.padEnd(STAGE_WIDTH)} ${done} of ${total}`)
    },
    finished(stage, summary, ms) {
      output.write(`${clear}${stage.padEnd(STAGE_WIDTH)} ${summary}  ${(ms / 1000).toFixed(2)} s\n`)
    },
    note(text) {
      output.write(`${clear}${printable(text)}\n`)
    },
  }
}
