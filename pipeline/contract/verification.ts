/**
 * What the last verification of the published files found: DATA_DIR/verification.json. The API hands out no file that
 * it names.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** Name of the file in DATA_DIR. */
export const VERIFICATION_FILE = 'verification.json'

/** A published file that is not what was published. */
const brokenFileSchema = z.strictObject({
  snapshot: z.string(),
  file: z.string(),
  /** What is wrong with it, as words after its name. */
  fault: z.string(),
})
export type BrokenFile = z.infer<typeof brokenFileSchema>

const verificationSchema = z.strictObject({
  /** When all retained snapshots were verified last; null where that was never done. */
  verified_at: z.iso.datetime({ precision: 0 }).nullable(),
  broken: z.array(brokenFileSchema),
})
export type Verification = z.infer<typeof verificationSchema>

const NEVER: Verification = { verified_at: null, broken: [] }

/** The last verification; one that cannot be read tells nothing, and the next one replaces it. */
export function readVerification(dataDir: string): Verification {
  try {
    return verificationSchema.parse(JSON.parse(readFileSync(join(dataDir, VERIFICATION_FILE), 'utf8')))
  } catch {
    return NEVER
  }
}
