/** The bundled sample, so that a first run publishes real data. */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RAW_FOLDER } from '../contract/files.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { isSkipped } from './drop-folder.ts'

const SAMPLE_FOLDER = fileURLToPath(new URL('../../data/sample/', import.meta.url))

/** The parts of the sample. */
const PARTS = ['ATTRIBUTION', 'apps', 'usage'] as const

/**
 * Copies the sample into DATA_DIR/raw if DATA_DIR has no snapshot and nothing raw (CONTRACT 9), without touching existing
 * files. The copy is made aside and removed once every part is in place, so an interrupted copy is completed by repeating.
 * @returns whether it copied the sample.
 */
export function placeSample(dataDir: string): boolean {
  const raw = join(dataDir, RAW_FOLDER)
  const aside = join(raw, '.sample')
  if (listSnapshots(dataDir).length > 0) return false
  if (!existsSync(aside) && filesOf(raw).length > 0) return false
  rmSync(aside, { recursive: true, force: true })
  mkdirSync(aside, { recursive: true })
  for (const part of PARTS) cpSync(join(SAMPLE_FOLDER, part), join(aside, part), { recursive: true })
  for (const part of PARTS) {
    const place = join(raw, part)
    const others = filesOf(place).filter((name) => !existsSync(join(aside, part, name)))
    if (others.length === 0) moveInto(join(aside, part), place)
  }
  rmSync(aside, { recursive: true })
  return true
}

/** Moves a file, or merges a folder into an existing one; existing files stay. */
function moveInto(from: string, to: string): void {
  if (!existsSync(to)) renameSync(from, to)
  else if (statSync(from).isDirectory()) {
    for (const name of readdirSync(from)) moveInto(join(from, name), join(to, name))
  }
}

/** Relative paths of the raw files below a folder; '' for a file. Skips what the loader skips. */
function filesOf(path: string): string[] {
  if (!existsSync(path)) return []
  if (!statSync(path).isDirectory()) return ['']
  return readdirSync(path, { withFileTypes: true })
    .filter(({ name }) => !isSkipped(name))
    .flatMap((entry) =>
      entry.isDirectory()
        ? filesOf(join(path, entry.name)).map((name) => join(entry.name, name))
        : [entry.name],
    )
}
