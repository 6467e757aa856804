{{/* Prefix of all names: the release's name if it says what this is. What is put behind it
     has to fit: a Service has room for 63 characters, of which "-webhook-service" takes 16. */}}
{{- define "dynamo.fullname" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- if $op.fullnameOverride -}}
{{- $op.fullnameOverride | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default "dynamo-operator" $op.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 47 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The same before "-conversion", for which a CronJob has room for 52 characters and a Job, with
     more behind that, for 63. */}}
{{- define "dynamo.jobs" -}}
{{- include "dynamo.fullname" . | trunc 41 | trimSuffix "-" -}}
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

{{/* The Lease by which the replicas of this release elect a leader. An operator of one
     namespace may share its own with others. */}}
{{- define "dynamo.election" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- if $op.controllerManager.leaderElection.id -}}{{ $op.controllerManager.leaderElection.id }}
{{- else if $op.namespaceRestriction.enabled -}}{{ include "dynamo.fullname" . }}
{{- else -}}dynamo.nvidia.com
{{- end -}}
{{- end -}}

{{- define "dynamo.nats" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- $op.natsAddr -}}
{{- end -}}

{{- define "dynamo.etcd" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- $op.etcdAddr -}}
{{- end -}}

{{/* Whether metrics are served. */}}
{{- define "dynamo.metrics" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- if and $op.enabled $op.metricsService.enabled -}}true{{- end -}}
{{- end -}}

{{/* The Secret with the token by which metrics are read, if there is one: an operator of
     one namespace may not ask the cluster who a scraper is. */}}
{{- define "dynamo.metrics.token" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- if and (include "dynamo.metrics.tls" .) $op.namespaceRestriction.enabled (not $op.metricsService.bindAuthDelegator) -}}
{{- default (printf "%s-metrics-token" (include "dynamo.fullname" .)) $op.metricsService.tokenSecret.name -}}
{{- end -}}
{{- end -}}

{{/* What makes an object one of the uninstallation, with its place among those. */}}
{{- define "dynamo.uninstall.hook" -}}
{{- include "dynamo.hook" (list "pre-delete" .) -}}
{{- end -}}

{{/* What makes an object one of a hook: when, and its place among those. */}}
{{- define "dynamo.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* Whether definitions lead to a Service that this release has so far: root, name. They are
     of the cluster, and only who has had them lead here is sure to be allowed to read them. */}}
{{- define "dynamo.converts" -}}
{{- $home := (index . 0).Release.Namespace -}}
{{- $service := index . 1 -}}
{{- $leads := false -}}
{{- if lookup "v1" "Service" $home $service -}}
{{- range include "dynamo.definitions" (index . 0) | fromYamlArray -}}
{{- $to := dig "spec" "conversion" "webhook" "clientConfig" "service" dict (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .) -}}
{{- if and (eq (get $to "name") $service) (eq (get $to "namespace") $home) }}{{ $leads = true }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if $leads }}true{{ end -}}
{{- end -}}

{{/* Whether metrics are served over TLS. */}}
{{- define "dynamo.metrics.tls" -}}
{{- if and (include "dynamo.metrics" .) (index .Values "dynamo-operator").metricsService.secure -}}true{{- end -}}
{{- end -}}

{{/* Whether the chart has the operator scraped. */}}
{{- define "dynamo.serviceMonitor" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- if include "dynamo.metrics" . -}}{{- include "dynamo.wanted" (list $op.metricsService.serviceMonitor "monitoring.coreos.com/v1" .) -}}{{- end -}}
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
{{- $full := include "dynamo.fullname" $root -}}
{{- /* The Lease of a namespace has one name for all operators. */ -}}
{{- $lease := ternary "- dynamo-operator-namespace-scope" (printf "- %s-namespace-scope" $full) (eq (index . 1) "namespace-scope") -}}
{{- $root.Files.Get (printf "files/rules/%s.yaml" (index . 1)) | replace "- dynamo-operator-" (printf "- %s-" $full) | replace (printf "- %s-namespace-scope" $full) $lease | replace "- webhook-server-cert" (printf "- %s" $op.webhook.certificateSecret.name) | replace "- mpi-run-ssh-secret" (printf "- %s" $op.dynamo.mpiRun.secretName) | replace "- dynamo.nvidia.com" (printf "- %s" (include "dynamo.election" $root)) -}}
{{- end -}}

{{/* The definitions of the API, by which the right to write them is limited. */}}
{{- define "dynamo.definitions" -}}
{{- range list "dynamocheckpoints" "dynamocomponentdeployments" "dynamographdeploymentrequests" "dynamographdeployments" "dynamographdeploymentscalingadapters" "dynamomodels" "dynamoworkermetadatas" }}
- {{ . }}.nvidia.com
{{- end -}}
{{- end -}}

{{- define "dynamo.converter.selector" -}}
app.kubernetes.io/name: dynamo-operator-converter
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dynamo.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Where pods of the release may run, and what pulls their images. */}}
{{- define "dynamo.placement" -}}
{{- $op := index .Values "dynamo-operator" -}}
{{- $placement := dict -}}
{{- with $op.imagePullSecrets }}{{ $_ := set $placement "imagePullSecrets" . }}{{ end -}}
{{- with $op.controllerManager.priorityClassName }}{{ $_ := set $placement "priorityClassName" . }}{{ end -}}
{{- with $op.controllerManager.nodeSelector }}{{ $_ := set $placement "nodeSelector" . }}{{ end -}}
{{- with $op.controllerManager.tolerations }}{{ $_ := set $placement "tolerations" . }}{{ end -}}
{{- with $placement }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* The spec of a Job that publishes or withdraws a converter: root, arguments. */}}
{{- define "dynamo.conversion.job" -}}
{{- $root := index . 0 -}}
{{- $op := index $root.Values "dynamo-operator" -}}
{{- $manager := $op.controllerManager.manager -}}
backoffLimit: 3
activeDeadlineSeconds: 600
template:
  metadata:
    labels:
      app.kubernetes.io/name: dynamo-operator-conversion
      app.kubernetes.io/instance: {{ $root.Release.Name }}
  spec:
    restartPolicy: Never
    serviceAccountName: {{ include "dynamo.fullname" $root }}-conversion
    {{- include "dynamo.placement" $root | nindent 4 }}
    securityContext: {{- include "dynamo.podSecurity" $root | nindent 6 }}
    containers:
      - name: conversion
        image: {{ include "dynamo.image" $root }}
        imagePullPolicy: {{ $manager.image.pullPolicy }}
        args: {{- toYaml (index . 1) | nindent 10 }}
        env:
          - name: POD_NAMESPACE
            valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        resources: {{- toYaml $manager.resources | nindent 10 }}
        securityContext: {{- toYaml $manager.containerSecurityContext | nindent 10 }}
{{- end -}}
