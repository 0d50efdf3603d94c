/** The writer of usage records over a data folder, with visible messages. */
import { UsageRecords } from '../../../api/chat/records.ts'
import { memoryLog } from '../api.ts'

/** A registry with the records' apps. */
export const REGISTRY = `app_id,app_name,visibility,subcategories,alias_of,updated_at
7,Seven,public,,,2025-01-01T00:00:00Z
8,Eight,public,,,2025-01-01T00:00:00Z
`

export function openRecords(dataDir: string) {
  const { log, messages } = memoryLog()
  const records = new UsageRecords(dataDir, log)
  return { records, messages, logged: (text: string) => messages().filter(({ msg }) => msg === text) }
}
