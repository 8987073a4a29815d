"""Traces and metrics by OpenTelemetry (the extra ``otel``): ``stage.traced`` for pipes, the rest for the gateway.

This module imports nothing, so that who only names a version of the conventions needs no extra.
"""
