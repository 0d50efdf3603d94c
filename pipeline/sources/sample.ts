/** The bundled sample, so that a newcomer's first run has something real to publish. */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RAW_FOLDER } from '../contract/files.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { isPassedOver } from './drop-folder.ts'

const SAMPLE_FOLDER = fileURLToPath(new URL('../../data/sample/', import.meta.url))

/** What the sample is made of. */
const PARTS = ['ATTRIBUTION', 'apps', 'usage'] as const

/**
 * Puts the sample into DATA_DIR/raw, if DATA_DIR holds no snapshot and nothing raw (CONTRACT 9). It is copied aside
 * first, and the copy is gone only when all of it is in its place: an interrupted one is simply made again. Nothing
 * that is there already is touched.
 * @returns whether it did.
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

/** Moves a file or folder, into the folder where there is one already; a file that is there stays. */
function moveInto(from: string, to: string): void {
  if (!existsSync(to)) renameSync(from, to)
  else if (statSync(from).isDirectory()) {
    for (const name of readdirSync(from)) moveInto(join(from, name), join(to, name))
  }
}

/** Paths of the files of raw data below a folder; that of a file itself is empty. What the loader passes over is none. */
function filesOf(path: string): string[] {
  if (!existsSync(path)) return []
  if (!statSync(path).isDirectory()) return ['']
  return readdirSync(path, { withFileTypes: true })
    .filter(({ name }) => !isPassedOver(name))
    .flatMap((entry) =>
      entry.isDirectory()
        ? filesOf(join(path, entry.name)).map((name) => join(entry.name, name))
        : [entry.name],
    )
}
