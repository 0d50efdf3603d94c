/** What a run tells the operator on stderr while it works: a bar on a terminal, plain lines elsewhere. */
import { styleText } from 'node:util'
import { printable } from '../contract/terminal.ts'

/** A place to write to that may be a terminal; process.stderr is one. */
export type Output = {
  write(text: string): unknown
  readonly isTTY?: boolean
}

export type Progress = {
  /** Work inside a stage: `done` of `total` steps. */
  step(stage: string, done: number, total: number): void
  /** A stage is over, after `ms` milliseconds. */
  finished(stage: string, summary: string, ms: number): void
  /** A sentence of its own. */
  note(text: string): void
}

const BAR_WIDTH = 24
const STAGE_WIDTH = 8
const CLEAR_LINE = '\r\u001B[2K'

/** Plain output reports a long stage at each tenth, so that a log of a backfill stays short. */
function atNewTenth(done: number, total: number): boolean {
  return Math.floor((10 * done) / total) > Math.floor((10 * (done - 1)) / total)
}

function bar(done: number, total: number): string {
  const filled = Math.round((BAR_WIDTH * done) / total)
  return '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
}

/** Progress on `output`. */
export function createProgress(output: Output): Progress {
  const terminal = output.isTTY === true
  const clear = terminal ? CLEAR_LINE : ''
  const paint = (style: 'dim' | 'bold', text: string) => (terminal ? styleText(style, text) : text)
  return {
    step(stage, done, total) {
      if (terminal)
        output.write(`${clear}${stage.padEnd(STAGE_WIDTH)} ${bar(done, total)} ${done} of ${total}`)
      else if (total >= 20 && atNewTenth(done, total)) output.write(`${stage}: ${done} of ${total}\n`)
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
