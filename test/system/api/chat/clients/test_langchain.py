"""The standard tests of langchain-tests for chat models, against the router at BASE with KEY. Those that need a real
model's knowledge or files are off by default."""

import os

from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests


class TestRouter(ChatModelIntegrationTests):
    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        router = {"base_url": os.environ["BASE"], "api_key": os.environ["KEY"]}
        return {"model": "a/acting", "max_retries": 0, **router}
