/** Chat over HTTP (CONTRACT 6): completions and the list of models. */
import type { Handler } from '../http/call.ts'
import type { Route } from '../http/route.ts'
import { ApiError } from '../http/errors.ts'
import { sendJson } from '../http/respond.ts'
import { COMPLETIONS_PATH, MODELS_PATH } from '../paths.ts'
import { shorten } from '../untrusted/shorten.ts'
import { findModel, listModels } from './model-list.ts'
import { CHAT_OPERATIONS } from './operations.ts'
import type { Chat } from './service.ts'

export function chatRoutes(chat: Chat): Route[] {
  const showModel: Handler = ({ params }, reply) => {
    const id = [params['author'], params['slug'], params['id']].filter((one) => one !== undefined).join('/')
    const model = findModel(id, chat.models.current())
    if (model === undefined) {
      throw new ApiError(404, `Unknown model: "${shorten(id)}"; ${MODELS_PATH} lists the models`)
    }
    sendJson(reply, 200, model)
  }
  const open = { method: 'GET', access: 'open' } as const
  const { completions, models, model, modelByName } = CHAT_OPERATIONS
  return [
    {
      method: 'POST',
      path: COMPLETIONS_PATH,
      access: 'inference',
      slow: true,
      typedErrors: true,
      operation: completions,
      handle: chat.complete,
    },
    {
      ...open,
      path: MODELS_PATH,
      operation: models,
      handle: (_request, reply) => sendJson(reply, 200, listModels(chat.models.current())),
    },
    { ...open, path: `${MODELS_PATH}/:author/:slug`, operation: model, handle: showModel },
    // Clients encode the slash in a name (openai.models.retrieve).
    { ...open, path: `${MODELS_PATH}/:id`, operation: modelByName, handle: showModel },
  ]
}
