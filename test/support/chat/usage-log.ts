/** The log of usage records over a data folder, with visible messages and pauses that a test can await. */
import { WRITER_LIMITS } from '../../../api/chat/records/record-writer.ts'
import { openUsageLog } from '../../../api/chat/records/usage-log.ts'
import { memoryLog } from '../api.ts'

/** A registry with the records' apps. */
export const REGISTRY = `app_id,app_name,visibility,subcategories,alias_of,updated_at
7,Seven,public,,,2025-01-01T00:00:00Z
8,Eight,public,,,2025-01-01T00:00:00Z
`

/** Opens the log at the time `now`. */
export async function openLog(dataDir: string, limits: Partial<typeof WRITER_LIMITS> = {}, now = new Date()) {
  const { log, lines, messages } = memoryLog()
  const usage = await openUsageLog(dataDir, {
    log,
    clock: () => now,
    limits: { ...WRITER_LIMITS, retryMs: 5, ...limits },
  })
  return { ...usage, lines, messages, logged: (text: string) => messages().filter(({ msg }) => msg === text) }
}
