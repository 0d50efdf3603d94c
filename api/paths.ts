/** The paths of the service; the snapshots' paths are in pipeline/contract. */

/** The base path of the API; *origin* paths of the contract are outside it. */
export const BASE_PATH = '/api/v1'

export const COMPLETIONS_PATH = `${BASE_PATH}/chat/completions`
export const DOCUMENT_PATH = `${BASE_PATH}/openapi.json`
export const GROUPS_PATH = `${BASE_PATH}/scim/groups`
export const MODELS_PATH = `${BASE_PATH}/models`
export const DATASETS_PATH = `${BASE_PATH}/datasets`
export const RANKINGS_PATH = `${DATASETS_PATH}/app-rankings`
export const SERIES_PATH = `${RANKINGS_PATH}/daily`
export const MODEL_RANKING_PATH = `${DATASETS_PATH}/rankings-daily`
export const STATUS_PATH = `${BASE_PATH}/status`
export const SYNC_JOBS_PATH = `${BASE_PATH}/scim/sync-jobs`

export const APPS_PATH = '/apps'
export const METHOD_PATH = '/method'
export const MODELS_PAGE_PATH = '/models'
export const FEED_PATH = '/feed.xml'
export const HEALTH_PATH = '/healthz'
export const REFERENCE_PATH = '/docs'
