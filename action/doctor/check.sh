#!/usr/bin/env bash
# Run streamkit doctor, write its report to the job's summary, and fail unless the result is accepted.
set -uo pipefail
options=(--dialect "$DOCTOR_DIALECT" --model "$DOCTOR_MODEL" --yes --markdown --badge "${DOCTOR_BADGE:-doctor-badge.json}")
if [ -n "${DOCTOR_KEY_ENV:-}" ]; then
    options+=(--key-env "$DOCTOR_KEY_ENV")
fi
# curl exits with 7 as long as no connection is accepted; any response means that the server is there
for (( second = 0; second < ${DOCTOR_WAIT_SECONDS:-0}; second++ )); do
    curl --silent --output /dev/null --max-time 5 "$DOCTOR_URL"
    [ $? -eq 7 ] || break
    sleep 1
done
streamkit doctor "${options[@]}" "$DOCTOR_URL" | tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"
status=${PIPESTATUS[0]}
echo "status=$status" >> "${GITHUB_OUTPUT:-/dev/null}"
if [ "$status" -eq 6 ] && [ "${DOCTOR_ACCEPT:-clean}" = repairable ]; then
    exit 0
fi
exit "$status"
