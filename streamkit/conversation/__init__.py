"""The neutral conversation, independent of any dialect: requests, whole responses, tool calls and results."""
