import { afterEach, describe, expect, it, vi } from 'vitest'
import { createKey } from '../../../../api/accounts/keys/key-store.ts'
import { findConnectionByName, putConnection } from '../../../../api/scim/directory/connection-store.ts'
import { watchAbandonedJobs } from '../../../../api/scim/jobs/abandoned-jobs.ts'
import {
  beat,
  failAbandonedJob,
  lastJob,
  requestJob,
  takeNextJob,
} from '../../../../api/scim/jobs/job-store.ts'
import { HEARTBEAT } from '../../../../api/scim/jobs/run-job.ts'
import { updateSchema } from '../../../../api/store/schema.ts'
import { openSqlite } from '../../../../api/store/sqlite-store.ts'
import { memoryLog } from '../../../support/api.ts'
import { connectionTo } from '../../../support/scim/sync.ts'

afterEach(() => vi.restoreAllMocks())

const now = new Date('2026-11-20T12:00:00Z')

const OTHER = 'another process'

/** A store with one job, which another process has taken. */
async function takenJob() {
  const store = await openSqlite(':memory:')
  await updateSchema(store, now)
  await createKey(store, { account: 'acme', kind: 'management', now })
  await putConnection(store, 'acme', connectionTo('http://127.0.0.1:1'), now)
  const accountId = (await findConnectionByName(store, 'acme'))?.accountId ?? ''
  await requestJob(store, accountId, now)
  const job = await takeNextJob(store, OTHER, now)
  return { store, accountId, id: job?.id ?? '' }
}

/** Milliseconds from the first look at a dead process's job to the look that ends it. */
async function timeToEnd(pauseMs: number): Promise<number> {
  const { store, accountId } = await takenJob()
  let time = 0
  vi.spyOn(performance, 'now').mockImplementation(() => time)
  const { log } = memoryLog()
  const us = { id: 'us', runs: () => false, endOf: () => undefined, forget: () => undefined }
  const look = watchAbandonedJobs(us, { store, clock: () => now, log, heartbeat: HEARTBEAT })
  for (;;) {
    await look()
    if ((await lastJob(store, accountId))?.status === 'failed') break
    time += pauseMs
  }
  await store.close()
  return time
}

describe('watchAbandonedJobs', () => {
  it('counts a look that is a little early or late', async () => {
    const promisedMs = 20_000
    for (const pauseMs of [
      HEARTBEAT.beatMs - 1,
      HEARTBEAT.beatMs - 100,
      HEARTBEAT.beatMs,
      HEARTBEAT.beatMs + 200,
    ]) {
      // The first look is up to a beat's pause after the death.
      expect((await timeToEnd(pauseMs)) + pauseMs).toBeLessThanOrEqual(promisedMs)
    }
  })

  it('leaves a job alone if its heart beats just before it would be ended', async () => {
    const { store, accountId, id } = await takenJob()
    await beat(store, { id, runner: OTHER })
    expect(await failAbandonedJob(store, { id, heartbeat: 0 }, now)).toBeUndefined()
    expect((await lastJob(store, accountId))?.status).toBe('running')
    expect(await failAbandonedJob(store, { id, heartbeat: 1 }, now)).toMatchObject({ id, status: 'failed' })
    await store.close()
  })

  it('counts many looks in quick succession as few', async () => {
    for (const pauseMs of [50, 500, HEARTBEAT.beatMs / 2]) {
      expect(await timeToEnd(pauseMs)).toBeGreaterThan(HEARTBEAT.missedBeats * HEARTBEAT.beatMs * 0.8)
    }
  })
})
