/** Chat over HTTP (CONTRACT 6): completions and the list of models. */
import type { Handler } from '../http/call.ts'
import { jsonReader, unroundedBody } from '../http/protocol/json-body.ts'
import { COMPLETIONS_PATH, MODELS_PATH } from '../paths.ts'
import { ApiError } from '../http/errors.ts'
import { shorten } from '../untrusted/shorten.ts'
import { findModel, listModels } from './model-list.ts'
import { sendJson } from '../http/respond.ts'
import type { Route } from '../http/route.ts'
import { STATUS_DISCONNECTED } from './call.ts'
import { candidatesFor } from './candidates.ts'
import { CHAT_OPERATIONS } from './operations.ts'
import { readChatRequest } from './request.ts'
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
      handle: chatCompletions(chat),
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

function chatCompletions(chat: Chat): Handler {
  // Read within the handler, so that an unreadable body has a usage record too.
  const readJson = jsonReader(chat.bodyLimit)
  return async (request, reply) => {
    const call = chat.begin(request.headersDistinct, reply)
    try {
      await chat.admit(call)
      const body = await readJson(request, reply)
      const chatRequest = readChatRequest(body, unroundedBody(request))
      call.isStream = chatRequest.stream
      const configuration = chat.models.current()
      const candidates = candidatesFor(chatRequest, configuration)
      const routed = { call, candidates, totalMs: configuration?.limits.total_ms ?? 0 }
      await (chatRequest.stream ? chat.stream : chat.whole)(routed, chatRequest, reply)
    } catch (error) {
      const refused = { outcome: 'failed', status: statusOf(error) } as const
      await chat.finish(
        call,
        call.isDisconnected ? { outcome: 'left', status: STATUS_DISCONNECTED } : refused,
      )
      throw error
    }
  }
}

function statusOf(error: unknown): number {
  const status = error instanceof Error && 'status' in error ? error.status : undefined
  return typeof status === 'number' && status >= 400 && status <= 599 ? status : 500
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
