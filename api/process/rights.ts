/** Which files and folders the user of the service may not use. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

const { R_OK, W_OK, X_OK } = constants

/** Why `paths` cannot be read, or written too, each reason once. The folder that would hold a missing path counts for it. */
export function missingRights(paths: readonly string[], use: 'read' | 'write'): string[] {
  const mode = use === 'read' ? R_OK : R_OK | W_OK
  const reasons = paths.flatMap((path) => {
    let found = path
    while (!existsSync(found)) found = dirname(found)
    try {
      const isFolder = statSync(found).isDirectory()
      if (!isFolder && found !== path) return [`${found} is not a folder`]
      accessSync(found, isFolder ? mode | X_OK : mode)
      return []
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)]
    }
  })
  return [...new Set(reasons)]
}
