/** The configured models; an operator can reload the file. */
import { OperatorError } from '../http/errors.ts'
import type { Log } from '../process/log.ts'
import { readConfiguration, type Configuration } from './configuration.ts'

export interface Models {
  /** The current configuration; undefined without MODELS_FILE. */
  current(): Configuration | undefined
  /** Reads the file again. If it is invalid, the current configuration stays, and the log has the reason. */
  reload(): Promise<void>
}

/**
 * Reads the configuration at `path`.
 * @throws {OperatorError} if it is invalid.
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
        log.error({ err: error }, 'models not reloaded; the current configuration stays')
      }
    },
  }
}
