/**
 * The manifest of a backup: its files and their checksums. It is written last, so a backup without it is incomplete.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { OperatorError } from '../http/errors.ts'
import { codeOf } from '../process/system-errors.ts'
import { sha256Of } from './copy.ts'

export const MANIFEST_FILE = 'manifest.json'

/** A path inside the backup, which never leads out of it. */
const innerPath = z.string().refine((path) => !path.startsWith('/') && !path.split('/').includes('..'))

const manifestSchema = z.strictObject({
  /** The version of the program that made the backup. */
  version: z.string(),
  made_at: z.iso.datetime(),
  /** The snapshot behind `current`; null if nothing was published. */
  current: z.string().nullable(),
  /** Where accounts, keys, limits and groups are: in the backup, or in a database that is backed up separately. */
  store: z.enum(['service.sqlite', 'database', 'none']),
  files: z.array(z.strictObject({ path: innerPath, bytes: z.int().nonnegative(), sha256: z.string() })),
})
export type Manifest = z.infer<typeof manifestSchema>
export type BackupFile = Manifest['files'][number]

/** Broken files that are listed at most. */
const NAMED_FILES = 20

/**
 * The manifest of a complete and undamaged backup.
 * @throws {OperatorError} that lists missing and changed files.
 */
export async function readWholeBackup(folder: string): Promise<Manifest> {
  const manifest = await readManifest(folder)
  const broken: string[] = []
  for (const file of manifest.files) {
    const fault = await faultOf(folder, file)
    if (fault !== undefined) broken.push(`${file.path}: ${fault}`)
  }
  if (broken.length === 0) return manifest
  const more = broken.length > NAMED_FILES ? [`and ${broken.length - NAMED_FILES} more`] : []
  throw new OperatorError(
    [
      `The backup ${folder} is incomplete, so nothing is restored:`,
      ...broken.slice(0, NAMED_FILES),
      ...more,
    ].join('\n'),
  )
}

async function readManifest(folder: string): Promise<Manifest> {
  try {
    return manifestSchema.parse(JSON.parse(await readFile(join(folder, MANIFEST_FILE), 'utf8')))
  } catch (error) {
    const reason =
      codeOf(error) === 'ENOENT' ? 'it is missing, so the backup was not finished' : 'it is damaged'
    throw new OperatorError(`${join(folder, MANIFEST_FILE)}: ${reason}. Take another backup`, {
      cause: error,
    })
  }
}

async function faultOf(folder: string, { path, bytes, sha256 }: BackupFile): Promise<string | undefined> {
  try {
    const found = await sha256Of(join(folder, path))
    if (found.bytes !== bytes) return `it has ${found.bytes} bytes instead of ${bytes}`
    return found.sha256 === sha256 ? undefined : 'its content has changed'
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? 'it is missing' : String(error)
  }
}
