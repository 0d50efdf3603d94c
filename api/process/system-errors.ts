/** Errors of the operating system: files, sockets, addresses, rights. */
import { accessSync, constants } from 'node:fs'
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

/** Why these paths cannot be read, or written too, each reason once. The folder that would hold a missing path counts for it. */
export function missingRights(paths: readonly string[], use: 'read' | 'write'): string[] {
  const mode = use === 'read' ? constants.R_OK : constants.R_OK | constants.W_OK
  const reasonsOf = (path: string): string[] => {
    try {
      accessSync(path, mode)
      return []
    } catch (error) {
      return codeOf(error) === 'ENOENT' ? reasonsOf(dirname(path)) : [messageOf(error)]
    }
  }
  return [...new Set(paths.flatMap(reasonsOf))]
}
