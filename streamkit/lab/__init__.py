"""Test tools: record, replay, mock, doctor and inspector, and the demo model."""
