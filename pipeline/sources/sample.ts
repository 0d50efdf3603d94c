/** The bundled sample, so that a first run publishes real data. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RAW_FOLDER } from '../contract/files.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { isSkipped } from './drop-folder.ts'

const SAMPLE = fileURLToPath(new URL('../../data/sample/', import.meta.url))

/**
 * Copies the sample into DATA_DIR/raw if DATA_DIR has no snapshot and no raw usage (CONTRACT 9), without touching existing
 * files. The copy is made aside and removed once every file is in place, so an interrupted copy is completed by repeating.
 * @returns whether it copied the sample.
 */
export function placeSample(dataDir: string): boolean {
  const raw = join(dataDir, RAW_FOLDER)
  const aside = join(raw, '.sample')
  const present = filesIn(raw).filter((name) => name.startsWith('usage/'))
  if (listSnapshots(dataDir).length > 0 || (!existsSync(aside) && present.length > 0)) return false
  rmSync(aside, { recursive: true, force: true })
  for (const part of ['apps', 'usage']) cpSync(join(SAMPLE, part), join(aside, part), { recursive: true })
  const sample = filesIn(aside)
  // Usage that arrived while the copy was interrupted stays alone.
  const isSample = present.every((name) => sample.includes(name))
  if (isSample) {
    addCredit(join(raw, 'ATTRIBUTION'))
    for (const name of sample.filter((each) => !existsSync(join(raw, each)))) {
      mkdirSync(dirname(join(raw, name)), { recursive: true })
      renameSync(join(aside, name), join(raw, name))
    }
  }
  rmSync(aside, { recursive: true })
  return isSample
}

/** The licence of the sample requires its credit line, also below those of the operator. */
function addCredit(path: string): void {
  const credit = readFileSync(join(SAMPLE, 'ATTRIBUTION'), 'utf8')
  const present = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (!present.includes(credit)) appendFileSync(path, present === '' ? credit : `\n${credit}`)
}

/** Relative paths of the raw files below a folder, without those that the loader skips. */
function filesIn(folder: string): string[] {
  return globSync('**', { cwd: folder, withFileTypes: true, exclude: ({ name }) => isSkipped(name) })
    .filter((entry) => !entry.isDirectory() && !isSkipped(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}
