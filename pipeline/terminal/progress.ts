/** Shows the progress of a run on stderr: a bar on a terminal, otherwise a line per stage. */
import { styleText } from 'node:util'
import { printable } from '../program/terminal.ts'

/** Where to write; process.stderr is an example. */
export type Output = {
  write(text: string): unknown
  readonly isTTY?: boolean
}

export type Progress = {
  /** Progress inside a stage, `done` of `total` steps; shown on a terminal only. */
  step(stage: string, done: number, total: number): void
  /** Ends a stage that took `ms` milliseconds. */
  finished(stage: string, summary: string, ms: number): void
  /** Writes a message. */
  note(text: string): void
}

const BAR_WIDTH = 24
const STAGE_WIDTH = 8
const CLEAR_LINE = '\r\u001B[2K'

function bar(done: number, total: number): string {
  const filled = Math.round((BAR_WIDTH * done) / total)
  return '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
}

export function createProgress(output: Output): Progress {
  const terminal = output.isTTY === true
  const clear = terminal ? CLEAR_LINE : ''
  const paint = (style: 'dim' | 'bold', text: string) => (terminal ? styleText(style, text) : text)
  return {
    step(stage, done, total) {
      if (!terminal) return
      output.write(`${clear}${stage.padEnd(STAGE_WIDTH)} ${bar(done, total)} ${done} of ${total}`)
    },
    finished(stage, summary, ms) {
      const seconds = paint('dim', `${(ms / 1000).toFixed(2)} s`)
      output.write(`${clear}${paint('bold', stage.padEnd(STAGE_WIDTH))} ${summary}  ${seconds}\n`)
    },
    note(text) {
      output.write(`${clear}${printable(text)}\n`)
    },
  }
}
