/** The producers of `import --from`, by name. */
import { cloudflare } from './maps/cloudflare.ts'
import { helicone } from './maps/helicone.ts'
import { langfuse } from './maps/langfuse.ts'
import { litellm } from './maps/litellm.ts'
import { openrouter } from './maps/openrouter.ts'
import { otlp } from './maps/otlp.ts'
import type { UsageMap } from './usage-map.ts'

export const PRODUCERS: Readonly<Record<string, UsageMap>> = {
  litellm,
  openrouter,
  cloudflare,
  langfuse,
  helicone,
  otlp,
}
