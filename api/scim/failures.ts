/** Why a sync fails: a closed set of causes, each with the sentence that a job shows (CONTRACT 5). */
import { ProgramError } from '../../pipeline/program/program.ts'

/** The sentences; README.md beside this file lists the remedies. */
export const FAILURES = {
  connection_changed: 'The directory connection was changed or removed during the sync; nothing was changed.',
  token_unavailable: 'The token for the directory is not available to the service.',
  token_refused: 'The token address issued no token for the directory.',
  address_refused: 'The address of the directory is one that the service may not connect to.',
  directory_unauthorized: 'The directory refused the token.',
  directory_unknown_host: 'The host name of the directory does not resolve.',
  directory_connection_refused: 'The host of the directory refused the connection.',
  directory_tls: 'The TLS connection to the directory failed, for example for its certificate.',
  directory_failing: 'The directory kept answering with a server error (5xx).',
  directory_unreachable: 'The directory could not be reached, or did not answer in time.',
  directory_rate_limited: 'The directory kept asking the service to slow down.',
  directory_invalid_response: 'The directory answered with something that is not valid SCIM.',
  directory_too_large: 'The directory is larger than the limits of a sync; nothing was changed.',
  directory_incomplete: 'The directory did not return all of its groups; nothing was changed.',
  directory_empty: 'The directory returned no groups at all; nothing was changed.',
  deletion_threshold_exceeded: 'The sync would remove too many groups or members; nothing was changed.',
  timed_out: 'The sync took too long and was stopped; nothing was changed.',
  interrupted: 'The sync was interrupted; nothing was changed.',
  internal: 'An unexpected fault of the service stopped the sync; nothing was changed.',
} as const

export type Failure = keyof typeof FAILURES

/** Ends a sync. The message, with its detail, is for the log and the operator, never for the caller; it holds no secret. */
export class SyncFailure extends ProgramError {
  override readonly name = 'SyncFailure'
  readonly exitCode = 1
  readonly failure: Failure
  readonly detail: string

  /** @param options the `cause` is another error, or the status with which the directory refused the token. */
  constructor(failure: Failure, detail: string, options?: ErrorOptions) {
    super(`${FAILURES[failure]} (${detail})`, options)
    this.failure = failure
    this.detail = detail
  }
}

/** The failure of a job that another process ended. */
export function lostJob(): SyncFailure {
  return new SyncFailure('interrupted', 'another process ended this job as interrupted')
}

/**
 * The result of a request, or its failure if the directory caused it: other requests may still succeed.
 * @throws if the whole sync cannot go on, for example since it takes too long.
 */
export async function orFailure<Result>(work: Promise<Result>): Promise<Result | SyncFailure> {
  try {
    return await work
  } catch (error) {
    if (error instanceof SyncFailure && error.failure.startsWith('directory_')) return error
    throw error
  }
}
