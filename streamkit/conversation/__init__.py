"""The neutral conversation: requests and whole responses, their calls and results, without any dialect."""
