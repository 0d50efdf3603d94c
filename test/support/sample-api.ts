/** The API over the published sample. */
import { join } from 'node:path'
import { startApi, type Api } from './api.ts'
import { runAt } from './pipeline/in-process.ts'
import { copyRaw } from './pipeline/nightly.ts'
import { REPOSITORY } from './processes.ts'

/** Publishes the sample in an empty `dataDir`, and serves it at noon after its last day. */
export async function startSampleApi(dataDir: string): Promise<Api> {
  copyRaw(dataDir, join(REPOSITORY, 'data', 'sample'))
  await runAt(dataDir, '2026-09-01T02:00:00Z')
  return await startApi(dataDir, { clock: () => new Date('2026-09-01T12:00:00Z') })
}
