/** Errors at the origin: a page for browsers, the envelope of CONTRACT 3 for programs. */
import type { Request } from 'express'
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { Reply } from '../http/call.ts'
import type { ApiError } from '../http/errors.ts'
import { beginError, sendBody } from '../http/respond.ts'
import { CONTENT_SECURITY_POLICY, HTML, renderDocument } from './document.ts'
import { html } from './html.ts'

const TITLES: Readonly<Record<number, string>> = {
  400: 'This address cannot be shown',
  404: 'Not found',
  410: 'This snapshot is gone',
  503: 'Not available yet',
}

const RANKINGS = html`<a href="/">The rankings</a> have every choice as a link.`
const REMEDIES: Readonly<Record<number, typeof RANKINGS>> = {
  410: html`<a href="${SNAPSHOTS_PATH}">The list of snapshots</a> has those that are retained.`,
  503: html`Try again in a minute. The first snapshot is made by <code>npm run nightly</code>.`,
}

/** Whether the request prefers HTML, as browsers do. */
export function wantsPage(request: Pick<Request, 'accepts'>): boolean {
  return request.accepts(['application/json', 'text/html']) === 'text/html'
}

/** Ends the reply with a page that shows the error and links onward. */
export function sendErrorPage(reply: Reply, fault: ApiError): void {
  const title = TITLES[fault.status] ?? 'Something is wrong'
  const page = renderDocument({
    title,
    description: fault.message,
    header: html`<h1>${title}</h1>`,
    main: html`<p>${fault.message.replace(/\.?$/, '.')}</p>
      <p>${REMEDIES[fault.status] ?? RANKINGS}</p>`,
  })
  beginError(reply, fault)
  reply.set('Content-Security-Policy', CONTENT_SECURITY_POLICY)
  sendBody(reply, fault.status, HTML, page)
}
