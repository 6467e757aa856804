{{/* Prefix of all names: the release's name if it says what this is. */}}
{{- define "dynamo.fullname" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- if $op.fullnameOverride -}}
{{- $op.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default "dynamo-operator" $op.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "dynamo.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/name: dynamo-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "dynamo.selector" -}}
app.kubernetes.io/name: dynamo-operator
app.kubernetes.io/instance: {{ .Release.Name }}
control-plane: controller-manager
{{- end -}}

{{- define "dynamo.image" -}}
{{- $image := (index .Values "dynamo-operator").controllerManager.manager.image -}}
{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}

{{/* The profiler is beside the operator, with its tag, unless values say otherwise. */}}
{{- define "dynamo.profiler" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- $manager := $op.controllerManager.manager.image -}}
{{- $image := $op.dynamo.profiler.image -}}
{{- if not $image -}}
{{- $image = "dynamo-profiler" -}}
{{- if contains "/" $manager.repository }}{{ $image = printf "%s/%s" (dir $manager.repository) $image }}{{ end -}}
{{- end -}}
{{- if contains ":" (base $image) }}{{ $image }}{{ else }}{{ $image }}:{{ default .Chart.AppVersion $manager.tag }}{{ end -}}
{{- end -}}

{{/* The namespace that a restricted operator serves. */}}
{{- define "dynamo.target" -}}
{{- default .Release.Namespace (index .Values "dynamo-operator").namespaceRestriction.targetNamespace -}}
{{- end -}}

{{- define "dynamo.nats" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- if $op.natsAddr -}}{{ $op.natsAddr }}
{{- else if .Values.nats.enabled -}}nats://{{ .Release.Name }}-nats.{{ .Release.Namespace }}.svc.{{ $op.kubernetesClusterDomain }}:4222
{{- end -}}
{{- end -}}

{{- define "dynamo.etcd" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- if $op.etcdAddr -}}{{ $op.etcdAddr }}
{{- else if .Values.etcd.enabled -}}{{ .Release.Name }}-etcd.{{ .Release.Namespace }}.svc.{{ $op.kubernetesClusterDomain }}:2379
{{- end -}}
{{- end -}}

{{/* What is "auto" is on where the API is served. */}}
{{- define "dynamo.wanted" -}}
{{- $choice := index . 0 | toString -}}
{{- if eq $choice "true" -}}true
{{- else if and (eq $choice "auto") ((index . 2).Capabilities.APIVersions.Has (index . 1)) -}}true
{{- end -}}
{{- end -}}

{{/* Rules of a role come from the markers beside the code, by hack/generate.sh.
     What they call by name has this release's names. */}}
{{- define "dynamo.rules" -}}
{{- $root := index . 0 -}}
{{- $op := index $root.Values "dynamo-operator" -}}
{{- $root.Files.Get (printf "files/rules/%s.yaml" (index . 1)) | replace "- dynamo-operator-" (printf "- %s-" (include "dynamo.fullname" $root)) | replace "webhook-server-cert" $op.webhook.certificateSecret.name -}}
{{- end -}}
