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
  return [
    {
      method: 'POST',
      path: COMPLETIONS_PATH,
      access: 'inference',
      slow: true,
      typedErrors: true,
      operation: CHAT_OPERATIONS.completions,
      handle: chat.complete,
    },
    {
      method: 'GET',
      path: MODELS_PATH,
      access: 'open',
      operation: CHAT_OPERATIONS.models,
      handle: (_request, reply) => sendJson(reply, 200, listModels(chat.models.current())),
    },
    {
      method: 'GET',
      path: `${MODELS_PATH}/:author/:slug`,
      access: 'open',
      operation: CHAT_OPERATIONS.model,
      handle: showModel(chat),
    },
    // Clients encode the slash in a name (openai.models.retrieve).
    {
      method: 'GET',
      path: `${MODELS_PATH}/:id`,
      access: 'open',
      operation: CHAT_OPERATIONS.modelByName,
      handle: showModel(chat),
    },
  ]
}

function showModel(chat: Chat): Handler {
  return ({ params }, reply) => {
    const id = [params['author'], params['slug'], params['id']].filter((one) => one !== undefined).join('/')
    const model = findModel(id, chat.models.current())
    if (model === undefined) {
      throw new ApiError(404, `Unknown model: "${shorten(id)}"; ${MODELS_PATH} lists the models`)
    }
    sendJson(reply, 200, model)
  }
}
