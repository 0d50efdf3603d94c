"""Runs Python's openai client against the router: program.py NAME BASE KEY. It prints a result for each model as JSON,
as program.js does. The client does not retry."""

import json
import sys

from openai import OpenAI

_, _, base, key = sys.argv
completions = OpenAI(base_url=base, api_key=key, max_retries=0).chat.completions
messages = [{"role": "user", "content": "Say hello"}]
parameters = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
tools = [{"type": "function", "function": {"name": "read_file", "parameters": parameters}}]


def ask(model, streams, wants_calls):
    if streams:
        with completions.stream(model=model, messages=messages, tools=tools) as events:
            message = events.get_final_completion().choices[0].message
    else:
        message = completions.create(model=model, messages=messages, tools=tools).choices[0].message
    if not wants_calls:
        return message.content
    return [[call.function.name, json.loads(call.function.arguments)] for call in message.tool_calls]


def attempt(model, streams=False, wants_calls=False):
    try:
        return ask(model, streams, wants_calls)
    except Exception as error:
        return {"failed": getattr(error, "status_code", None), "message": str(error)}


results = {
    "plain": attempt("a/hello"),
    "streamed": attempt("a/hello", streams=True),
    "tools": attempt("a/tools", wants_calls=True),
    "streamedTools": attempt("a/tools", streams=True, wants_calls=True),
    "refused": attempt("a/refused"),
    "refusedStream": attempt("a/refused", streams=True),
    "broken": attempt("a/broken"),
    "cutStream": attempt("a/cut", streams=True),
}
print(json.dumps(results))
