import com.fasterxml.jackson.databind.ObjectMapper;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.errors.OpenAIServiceException;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionMessage;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs openai-java against the router: Client NAME BASE KEY. It prints a result for each model as JSON, like
 * test/system/api/chat/clients/program.js. The client does not retry.
 */
class Client {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, Object> RESULTS = new LinkedHashMap<>();
    static OpenAIClient api;

    public static void main(String[] arguments) throws Exception {
        api = OpenAIOkHttpClient.builder().baseUrl(arguments[1]).apiKey(arguments[2]).maxRetries(0).build();
        run("plain", "a/hello", false, false);
        run("streamed", "a/hello", true, false);
        run("tools", "a/tools", false, true);
        run("streamedTools", "a/tools", true, true);
        run("refused", "a/refused", false, false);
        run("refusedStream", "a/refused", true, false);
        run("broken", "a/broken", false, false);
        run("cutStream", "a/cut", true, false);
        System.out.println(JSON.writeValueAsString(RESULTS));
        // Its connections keep the process alive.
        System.exit(0);
    }

    static void run(String result, String model, boolean streams, boolean wantsCalls) throws Exception {
        try {
            ChatCompletionMessage message = ask(model, streams);
            RESULTS.put(result, wantsCalls ? callsOf(message) : message.content().orElse(null));
        } catch (OpenAIServiceException error) {
            RESULTS.put(result, Map.of("failed", error.statusCode(), "message", error.getMessage()));
        } catch (RuntimeException error) {
            Map<String, Object> failure = new LinkedHashMap<>();
            failure.put("failed", null);
            failure.put("message", String.valueOf(error.getMessage()));
            RESULTS.put(result, failure);
        }
    }

    static ChatCompletionMessage ask(String model, boolean streams) {
        FunctionParameters parameters = FunctionParameters.builder()
            .putAdditionalProperty("type", JsonValue.from("object"))
            .putAdditionalProperty("properties", JsonValue.from(Map.of("a", Map.of("type", "number"))))
            .build();
        ChatCompletionCreateParams.Builder request = ChatCompletionCreateParams.builder()
            .model(model)
            .addUserMessage("Say hello")
            .addFunctionTool(FunctionDefinition.builder().name("read_file").parameters(parameters).build());
        if (!streams) return api.chat().completions().create(request.build()).choices().get(0).message();
        // Its accumulator wants the usage in a chunk of its own.
        request.streamOptions(ChatCompletionStreamOptions.builder().includeUsage(true).build());
        ChatCompletionAccumulator all = ChatCompletionAccumulator.create();
        try (var chunks = api.chat().completions().createStreaming(request.build())) {
            chunks.stream().forEach(all::accumulate);
        }
        return all.chatCompletion().choices().get(0).message();
    }

    static List<List<Object>> callsOf(ChatCompletionMessage message) throws Exception {
        List<List<Object>> calls = new java.util.ArrayList<>();
        for (var call : message.toolCalls().orElse(List.of())) {
            var function = call.asFunction().function();
            calls.add(List.of(function.name(), JSON.readValue(function.arguments(), Map.class)));
        }
        return calls;
    }
}
