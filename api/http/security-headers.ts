import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import helmet from 'helmet'
import type { Headers } from './call.ts'

/** What a reply that says nothing else tells browsers and caches to do with it. */
export function securityHeaders(): Headers {
  return {
    // Errors and states of the moment must not be cached; replies that may be say so themselves.
    'Cache-Control': 'no-store',
    ...headersOf(
      helmet({
        contentSecurityPolicy: {
          useDefaults: false,
          directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
        },
        // Whether the origin is reached by TLS is the proxy's knowledge, and so is the promise that it will be.
        strictTransportSecurity: false,
        // Open data may be read from any page.
        crossOriginResourcePolicy: { policy: 'cross-origin' },
        // For browsers and plug-ins that are gone.
        xDnsPrefetchControl: false,
        xDownloadOptions: false,
        xPermittedCrossDomainPolicies: false,
        xPoweredBy: false,
        xXssProtection: false,
      }),
    ),
  }
}

/** The headers that the middleware gives every reply; they are the same for all, so it is asked but once. */
function headersOf(middleware: ReturnType<typeof helmet>): Headers {
  const headers: Record<string, string> = {}
  class NotingReply extends ServerResponse {
    override setHeader(name: string, value: string): this {
      headers[name] = value
      return this
    }
  }
  const request = new IncomingMessage(new Socket())
  middleware(request, new NotingReply(request), (error) => {
    if (error !== undefined) throw error
  })
  return headers
}
