/** Errors of the operating system: files, sockets, addresses, rights. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The code of a system error, such as ENOENT; undefined for other errors. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** The result of `read`; undefined if what it reads does not exist. */
export function unlessAbsent<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The text of an error for a message. */
export function messageOf(error: unknown): string {
  // A host with several addresses fails with one, which has no text of its own.
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}

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
      return [messageOf(error)]
    }
  })
  return [...new Set(reasons)]
}
