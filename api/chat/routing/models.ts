/** The models that are configured now; the file is read again when the operator says so. */
import { OperatorError } from '../../http/errors.ts'
import type { Log } from '../../process/log.ts'
import { readConfiguration, type Configuration } from './configuration.ts'

export interface Models {
  /** What is in force; undefined when no MODELS_FILE is set. */
  current(): Configuration | undefined
  /** Reads the file again; what was in force stays when it is faulty, and the log says why. */
  reload(): Promise<void>
}

/**
 * Reads the configuration at `path`.
 * @throws {OperatorError} when it is faulty.
 */
export async function openModels(
  path: string | undefined,
  environment: NodeJS.ProcessEnv,
  log: Log,
): Promise<Models> {
  if (path === undefined) return { current: () => undefined, reload: async () => undefined }

  async function read(file: string): Promise<Configuration> {
    const configuration = await readConfiguration(file, environment)
    for (const warning of configuration.warnings) log.warn(warning)
    log.info({ models: configuration.models.size }, 'models configured')
    return configuration
  }

  let configuration = await read(path)
  return {
    current: () => configuration,
    async reload() {
      try {
        configuration = await read(path)
      } catch (error) {
        if (!(error instanceof OperatorError)) throw error
        log.error({ err: error }, 'models not reloaded; what was in force stays')
      }
    },
  }
}
