#!/bin/sh
# Creates the namespace, and the search attributes that the Web UI filters by. It can be run again.
set -eu
address=temporal:7233
namespace=${TEMPORAL_NAMESPACE:-default}
temporal operator namespace describe --address "$address" --namespace "$namespace" >/dev/null 2>&1 ||
  temporal operator namespace create --address "$address" --namespace "$namespace" --retention 30d
for name in AgentPhase AgentModel AgentOutcome AgentBatch AgentTenant; do
  temporal operator search-attribute list --address "$address" --namespace "$namespace" | grep -qw "$name" ||
    temporal operator search-attribute create --address "$address" --namespace "$namespace" --name "$name" --type Keyword
done
