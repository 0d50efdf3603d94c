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

const CREDIT = 'ATTRIBUTION'
const PARTS = [CREDIT, 'apps', 'usage']
const SAMPLE_FOLDER = fileURLToPath(new URL('../../data/sample/', import.meta.url))

/**
 * Copies the sample into DATA_DIR/raw if DATA_DIR has no snapshot and no raw usage (CONTRACT 9), beside a registry that is
 * there. The copy is made aside and removed once every file is in place, so an interrupted copy is completed by repeating.
 * @returns whether it copied the sample.
 */
export function placeSample(dataDir: string): boolean {
  const raw = join(dataDir, RAW_FOLDER)
  const aside = join(raw, '.sample')
  if (listSnapshots(dataDir).length > 0) return false
  const present = filesIn(raw)
  const usage = present.filter((name) => name.startsWith('usage/'))
  if (!existsSync(aside) && usage.length > 0) return false
  rmSync(aside, { recursive: true, force: true })
  for (const part of PARTS) cpSync(join(SAMPLE_FOLDER, part), join(aside, part), { recursive: true })
  const sample = filesIn(aside)
  // Usage that arrived while the copy was interrupted stays alone.
  const isSample = usage.every((name) => sample.includes(name))
  for (const name of sample.filter((each) => isSample && !present.includes(each))) {
    mkdirSync(dirname(join(raw, name)), { recursive: true })
    renameSync(join(aside, name), join(raw, name))
  }
  if (isSample) addCredit(join(raw, CREDIT))
  rmSync(aside, { recursive: true })
  return isSample
}

/** The licence of the sample requires its credit line, also below those of the operator. */
function addCredit(path: string): void {
  const credit = readFileSync(join(SAMPLE_FOLDER, CREDIT), 'utf8')
  if (!readFileSync(path, 'utf8').includes(credit)) appendFileSync(path, `\n${credit}`)
}

/** Relative paths of the raw files below a folder, without those that the loader skips. */
function filesIn(folder: string): string[] {
  return globSync('**', { cwd: folder, withFileTypes: true, exclude: ({ name }) => isSkipped(name) })
    .filter((entry) => !entry.isDirectory() && !isSkipped(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}
