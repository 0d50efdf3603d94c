import type { Notify } from '../../process/webhook.ts'
import type { Queries } from '../../store/store.ts'
import { findConnection } from '../directory/connection-store.ts'
import { showJob, type Job } from './job-store.ts'

/** Sends a notice of a failed scheduled job, since nobody polls it. */
export async function noticeFailure(store: Queries, job: Job, notify: Notify): Promise<void> {
  if (!job.scheduled) return
  const account = await accountOf(store, job)
  const { error_message: reason } = showJob(job)
  await notify({
    event: 'sync_failed',
    message: `The scheduled directory sync of account "${account}" failed. ${reason ?? ''}`,
    account,
    job_id: job.id,
  })
}

// Without its connection or store, the account is named by its id.
async function accountOf(store: Queries, { account_id: id }: Job): Promise<string> {
  const connection = await findConnection(store, id).catch(() => undefined)
  return connection?.account ?? id
}
