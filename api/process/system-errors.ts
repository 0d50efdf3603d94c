/** Errors of the operating system: files, sockets, addresses. */

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
