/**
 * The result of the last verification of published files: DATA_DIR/verification.json. The API serves no file that is
 * listed there.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** Name of the file in DATA_DIR. */
export const VERIFICATION_FILE = 'verification.json'

/** A damaged or missing published file. */
const brokenFileSchema = z.strictObject({
  snapshot: z.string(),
  file: z.string(),
  /** The fault, as words after the file's name. */
  fault: z.string(),
})
export type BrokenFile = z.infer<typeof brokenFileSchema>

const verificationSchema = z.strictObject({
  /** When all retained snapshots were last verified; null for never. */
  verified_at: z.iso.datetime({ precision: 0 }).nullable(),
  broken: z.array(brokenFileSchema),
})
export type Verification = z.infer<typeof verificationSchema>

const NEVER: Verification = { verified_at: null, broken: [] }

/** The last verification. An unreadable one counts as none, and the next one replaces it. */
export function readVerification(dataDir: string): Verification {
  try {
    return verificationSchema.parse(JSON.parse(readFileSync(join(dataDir, VERIFICATION_FILE), 'utf8')))
  } catch {
    return NEVER
  }
}
