"""A scripted provider in any dialect, with a verdict on its client. See docs/how-to/mock-a-provider.md."""
