/** Errors of the system beneath us: files, sockets, addresses. */

/** The word by which the system names what went wrong, such as ENOENT; undefined for errors of another kind. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** What `read` gives; undefined when what it reads is not there. */
export function unlessAbsent<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
