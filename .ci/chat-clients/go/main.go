// Command client runs a Go client against the router: client NAME BASE KEY. It prints a result for each model as JSON,
// like test/system/api/chat/clients/program.js. No client retries.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	sashabaranov "github.com/sashabaranov/go-openai"
)

var parameters = map[string]any{
	"type":       "object",
	"properties": map[string]any{"a": map[string]any{"type": "number"}},
	"required":   []string{"a"},
}

// A call is the name of a function and its arguments.
type call [2]any

// A client answers with the text and the calls of a reply, whole or as a stream.
type client func(model string, stream bool) (string, []call, error)

type failure struct {
	Failed  *int   `json:"failed"`
	Message string `json:"message"`
}

func callOf(name, arguments string) call {
	var parsed any
	if err := json.Unmarshal([]byte(arguments), &parsed); err != nil {
		return call{name, err.Error()}
	}
	return call{name, parsed}
}

func official(base, key string) client {
	api := openai.NewClient(option.WithBaseURL(base), option.WithAPIKey(key), option.WithMaxRetries(0))
	return func(model string, stream bool) (string, []call, error) {
		request := openai.ChatCompletionNewParams{
			Model:    model,
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say hello")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(
				openai.FunctionDefinitionParam{Name: "read_file", Parameters: parameters},
			)},
		}
		if !stream {
			reply, err := api.Chat.Completions.New(context.Background(), request)
			if err != nil {
				return "", nil, err
			}
			return messageOf(reply.Choices[0].Message)
		}
		events := api.Chat.Completions.NewStreaming(context.Background(), request)
		all := openai.ChatCompletionAccumulator{}
		for events.Next() {
			if !all.AddChunk(events.Current()) {
				return "", nil, errors.New("the accumulator refuses a chunk")
			}
		}
		if err := events.Err(); err != nil {
			return "", nil, err
		}
		return messageOf(all.Choices[0].Message)
	}
}

func messageOf(message openai.ChatCompletionMessage) (string, []call, error) {
	calls := []call{}
	for _, one := range message.ToolCalls {
		calls = append(calls, callOf(one.Function.Name, one.Function.Arguments))
	}
	return message.Content, calls, nil
}

func community(base, key string) client {
	config := sashabaranov.DefaultConfig(key)
	config.BaseURL = base
	api := sashabaranov.NewClientWithConfig(config)
	return func(model string, stream bool) (string, []call, error) {
		request := sashabaranov.ChatCompletionRequest{
			Model:    model,
			Messages: []sashabaranov.ChatCompletionMessage{{Role: "user", Content: "Say hello"}},
			Tools: []sashabaranov.Tool{{
				Type:     "function",
				Function: &sashabaranov.FunctionDefinition{Name: "read_file", Parameters: parameters},
			}},
		}
		if !stream {
			reply, err := api.CreateChatCompletion(context.Background(), request)
			if err != nil {
				return "", nil, err
			}
			calls := []call{}
			for _, one := range reply.Choices[0].Message.ToolCalls {
				calls = append(calls, callOf(one.Function.Name, one.Function.Arguments))
			}
			return reply.Choices[0].Message.Content, calls, nil
		}
		chunks, err := api.CreateChatCompletionStream(context.Background(), request)
		if err != nil {
			return "", nil, err
		}
		defer chunks.Close()
		text := ""
		parts := map[int][2]string{}
		for {
			chunk, err := chunks.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return text, nil, err
			}
			for _, choice := range chunk.Choices {
				text += choice.Delta.Content
				for _, one := range choice.Delta.ToolCalls {
					known := parts[*one.Index]
					parts[*one.Index] = [2]string{known[0] + one.Function.Name, known[1] + one.Function.Arguments}
				}
			}
		}
		calls := []call{}
		for index := range len(parts) {
			calls = append(calls, callOf(parts[index][0], parts[index][1]))
		}
		return text, calls, nil
	}
}

func failureOf(err error) failure {
	var status *int
	message := err.Error()
	var official *openai.Error
	var community *sashabaranov.APIError
	if errors.As(err, &official) && official.StatusCode >= 400 {
		status = &official.StatusCode
		message += " " + official.Message
	} else if errors.As(err, &community) {
		status = &community.HTTPStatusCode
	}
	return failure{status, message}
}

func main() {
	name, base, key := os.Args[1], os.Args[2], os.Args[3]
	ask := official(base, key)
	if name == "go-openai" {
		ask = community(base, key)
	}
	results := map[string]any{}
	run := func(result, model string, stream, wantsCalls bool) {
		text, calls, err := ask(model, stream)
		switch {
		case err != nil:
			results[result] = failureOf(err)
		case wantsCalls:
			results[result] = calls
		default:
			results[result] = text
		}
	}
	run("plain", "a/hello", false, false)
	run("streamed", "a/hello", true, false)
	run("tools", "a/tools", false, true)
	run("streamedTools", "a/tools", true, true)
	run("refused", "a/refused", false, false)
	run("refusedStream", "a/refused", true, false)
	run("broken", "a/broken", false, false)
	run("cutStream", "a/cut", true, false)
	output, err := json.Marshal(results)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(output))
}
