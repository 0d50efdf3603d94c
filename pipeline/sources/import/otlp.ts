/**
 * OpenTelemetry: spans in OTLP/JSON, one ExportTraceServiceRequest per line (the Collector's file exporter), or one document,
 * also a trace as Grafana Tempo replies with it. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding has the encoding,
 * https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/ the attributes. The app is `app` or `app.name` of the
 * span, otherwise the service of the resource.
 *
 * Tokens: by the conventions `gen_ai.usage.input_tokens` includes the cached ones and `gen_ai.usage.output_tokens` the
 * reasoning. Spans of agents and tools, which contain the spans of model calls, are skipped.
 */
import { isRecord } from '../formats/json.ts'
import type { Read, UsageMap } from './usage-map.ts'

export const otlp: UsageMap = {
  columns: {
    ts: ['startTimeUnixNano', 'start_time_unix_nano'],
    app: (read) => read('attributes.app.name') ?? read('attributes.app') ?? serviceOf(read),
    prompt_tokens: ['attributes.gen_ai.usage.input_tokens', 'attributes.gen_ai.usage.prompt_tokens'],
    completion_tokens: ['attributes.gen_ai.usage.output_tokens', 'attributes.gen_ai.usage.completion_tokens'],
    // A span's id is unique in its trace.
    request_id: (read) => {
      const ids = [read('traceId') ?? read('trace_id'), read('spanId') ?? read('span_id')]
      return ids.includes(null) ? null : ids.map((id) => hexOf(id ?? '')).join('-')
    },
    model: ['attributes.gen_ai.response.model', 'attributes.gen_ai.request.model'],
    provider: ['attributes.gen_ai.provider.name', 'attributes.gen_ai.system'],
    account_id: ['attributes.user.id', 'attributes.enduser.id'],
    reasoning_tokens: [
      'attributes.gen_ai.usage.reasoning.output_tokens',
      'attributes.gen_ai.usage.reasoning_tokens',
      'attributes.gen_ai.usage.details.reasoning_tokens',
    ],
    cached_tokens: [
      'attributes.gen_ai.usage.cache_read.input_tokens',
      'attributes.gen_ai.usage.cache_read_input_tokens',
      'attributes.gen_ai.usage.cached_input_tokens',
      'attributes.gen_ai.usage.details.cache_read_tokens',
    ],
  },
  unit: 'ns',
  rows: spansOf,
  skipped: [
    // The call of a model names its operation or its model; the span of an agent may sum the tokens of its calls.
    (read) =>
      ['operation.name', 'request.model', 'response.model'].every(
        (name) => read(`attributes.gen_ai.${name}`) === null,
      ),
    {
      path: 'attributes.gen_ai.operation.name',
      // The second of each is Semantic Kernel's.
      not: ['chat', 'chat.completions', 'text_completion', 'text.completions', 'generate_content'],
    },
    // The type of the request in OpenLLMetry, and of the call in LiteLLM.
    (read) =>
      /embed|rerank|moderation|image|speech|transcription|search|mcp/i.test(
        read('attributes.llm.request.type') ?? '',
      ),
  ],
  failed: [{ path: 'status.code', is: ['2', 'status_code_error', 'error'] }],
}

/** Ids are hex by the conventions, and base64 where protobuf's own JSON is written: the same span has one id. */
function hexOf(id: string): string {
  return /^(?:[\w+/]{11}=|[\w+/]{22}==)$/.test(id)
    ? Buffer.from(id, 'base64').toString('hex')
    : id.toLowerCase()
}

/** The service of a span; programs without a name have one made up by the SDK. */
function serviceOf(read: Read): string | null {
  const service = read('resource.attributes.service.name')
  return service?.startsWith('unknown_service') === true ? null : service
}

/** The spans of a document, each with its resource; a document without such a list is one span. */
function* spansOf(document: unknown): Iterable<unknown> {
  const trace = isRecord(document) ? (document['trace'] ?? document) : document
  const resources = listIn(trace, 'resourceSpans', 'resource_spans', 'batches')
  if (resources === undefined) return void (yield document)
  for (const resource of resources) {
    for (const scope of listIn(resource, 'scopeSpans', 'scope_spans', 'instrumentationLibrarySpans') ?? []) {
      for (const span of listIn(scope, 'spans') ?? []) {
        if (isRecord(span) && isRecord(resource)) yield { ...span, resource: resource['resource'] }
      }
    }
  }
}

function listIn(value: unknown, ...names: readonly string[]): readonly unknown[] | undefined {
  if (!isRecord(value)) return undefined
  return names.map((name) => value[name]).find((list) => Array.isArray(list))
}
