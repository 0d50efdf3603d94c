/** What a run tells the operator on stderr while it works: a bar on a terminal, a line for each stage elsewhere. */
import { styleText } from 'node:util'
import { printable } from '../contract/terminal.ts'

/** A place to write to that may be a terminal; process.stderr is one. */
export type Output = {
  write(text: string): unknown
  readonly isTTY?: boolean
}

export type Progress = {
  /** Work inside a stage: `done` of `total` steps; only a terminal shows it. */
  step(stage: string, done: number, total: number): void
  /** A stage is over, after `ms` milliseconds. */
  finished(stage: string, summary: string, ms: number): void
  /** A sentence of its own. */
  note(text: string): void
}

const BAR_WIDTH = 24
const STAGE_WIDTH = 8
const CLEAR_LINE = '\r\u001B[2K'

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

/** A progress that tells of a whole run in one line, and what writes that line once the run is over. */
export function createBriefProgress(progress: Progress): {
  readonly progress: Progress
  readonly end: () => void
} {
  let total = 0
  let outcome = ''
  return {
    progress: {
      ...progress,
      finished(stage, summary, ms) {
        total += ms
        // What this stage counted is what is published, or why nothing is.
        if (stage === 'rank') outcome = summary
      },
    },
    end: () => progress.finished('run', outcome, total),
  }
}
