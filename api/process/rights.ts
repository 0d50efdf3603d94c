/** Which files and folders the user of the service may not use. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What a program does with the files of a folder. */
type Use = 'read' | 'write'

const RIGHTS: Readonly<Record<Use, number>> = {
  read: constants.R_OK,
  write: constants.R_OK | constants.W_OK,
}

/**
 * Why DATA_DIR or its contents cannot be used so, a sentence per reason.
 * @param inside files and folders in it; any may be missing.
 */
export function dataFolderFaults(dataDir: string, inside: readonly string[], use: Use = 'write'): string[] {
  return missingRights(dataDir, inside, use).map(
    (reason) => `DATA_DIR "${dataDir}" cannot be used: ${reason}`,
  )
}

/** The same of any folder, without its name before each reason. */
export function missingRights(folder: string, inside: readonly string[], use: Use = 'write'): string[] {
  const paths = inside.map((name) => join(folder, name)).filter((path) => existsSync(path))
  const reasons = [
    reasonAgainst(() => accessFolder(nearestExisting(folder), use)),
    ...paths.map((path) => reasonAgainst(() => access(path, use))),
  ]
  return reasons.filter((reason) => reason !== undefined)
}

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path))
}

function access(path: string, use: Use): void {
  if (statSync(path).isDirectory()) accessFolder(path, use)
  else accessSync(path, RIGHTS[use])
}

function accessFolder(path: string, use: Use): void {
  if (!statSync(path).isDirectory()) throw new Error(`${path} is not a folder`)
  accessSync(path, RIGHTS[use] | constants.X_OK)
}

function reasonAgainst(work: () => void): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
