{{- define "rewardwatch.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "rewardwatch.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "rewardwatch.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "rewardwatch.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "rewardwatch.selector" -}}
app.kubernetes.io/name: {{ include "rewardwatch.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "rewardwatch.labels" -}}
{{ include "rewardwatch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "rewardwatch.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "rewardwatch.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "rewardwatch.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* The configuration, as JSON. */ -}}
{{- define "rewardwatch.config" -}}
{{- $config := fromYaml .Values.config }}
{{- if hasKey $config "Error" }}{{ fail (printf "config: not YAML: %s" $config.Error) }}{{ end }}
{{- $config | toJson }}
{{- end }}

{{- /* Whether state is in Kafka: "true" or nothing. */ -}}
{{- define "rewardwatch.cluster" -}}
{{- $config := include "rewardwatch.config" . | fromJson }}
{{- if dig "cluster" "checkpoints_topic" "" $config }}true{{ end }}
{{- end }}

{{- /* Whether policies have other groups than those of the rules and dashboards of the chart: "true" or nothing. */ -}}
{{- define "rewardwatch.otherGroups" -}}
{{- $config := include "rewardwatch.config" . | fromJson }}
{{- $labels := list }}
{{- $policies := default (list (dict)) (get $config "policies") }}
{{- range $policies }}
{{- $labels = concat $labels (ternary (default (list) .group_by) (list "env") (hasKey . "group_by")) }}
{{- if dig "feedback" "horizons" (list) . }}{{ $labels = append $labels "horizon" }}{{ end }}
{{- end }}
{{- if ne (uniq $labels | toJson) (list "env" | toJson) }}true{{ end }}
{{- end }}

{{- /* Refuses configurations that cannot work in the pods of this chart. */ -}}
{{- define "rewardwatch.check" -}}
{{- $config := include "rewardwatch.config" . | fromJson }}
{{- $cluster := include "rewardwatch.cluster" . }}
{{- $listen := dig "http" "listen" "127.0.0.1:9464" $config }}
{{- if not (has $listen (list ":9464" "0.0.0.0:9464" "[::]:9464")) }}
{{- fail (printf "config: http.listen is %q, which probes and the service do not reach; set \":9464\"" $listen) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "rewardwatch.fullname" .)) }}
{{- fail (printf "a Service cannot be called %q; set fullnameOverride to lowercase letters, digits and hyphens, beginning with a letter" (include "rewardwatch.fullname" .)) }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (not $cluster) }}
{{- fail (printf "replicas is %d, but only instances with cluster.units_topic and cluster.checkpoints_topic in config share their work" (int .Values.replicas)) }}
{{- end }}
{{- if and (or .Values.http.tls .Values.http.authenticated) (not (dig "http" "web_config_file" "" $config)) }}
{{- fail "http.tls and http.authenticated require http.web_config_file in config" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (dig "http" "require_token" false $config) (not .Values.serviceMonitor.authorization) (not .Values.serviceMonitor.basicAuth) }}
{{- fail "config: http.require_token blocks scrapes by Prometheus; set serviceMonitor.authorization.credentials to the secret with the token of a viewer" }}
{{- end }}
{{- if and .Values.serviceMonitor.authorization .Values.serviceMonitor.basicAuth }}
{{- fail "serviceMonitor.authorization and serviceMonitor.basicAuth cannot be combined" }}
{{- end }}
{{- $mounts := list "/data" }}
{{- range .Values.extraVolumeMounts }}{{ $mounts = append $mounts (clean (default "" .mountPath)) }}{{ end }}
{{- range $key, $path := dict
  "checkpoint.directory" (dig "checkpoint" "directory" "" $config)
  "ingest.log.directory" (dig "ingest" "log" "directory" "" $config)
  "ingest.dead_letters.directory" (dig "ingest" "dead_letters" "directory" "" $config)
  "retrain.runs_directory" (dig "retrain" "runs_directory" "" $config)
  "retrain.ledger.sqlite" (dig "retrain" "ledger" "sqlite" "" $config)
  "http.audit_log" (dig "http" "audit_log" "" $config) }}
{{- if $path }}
{{- $writable := false }}
{{- range $mounts }}{{ if hasPrefix (printf "%s/" .) (printf "/%s" $path | clean | printf "%s/") }}{{ $writable = true }}{{ end }}{{ end }}
{{- if not $writable }}{{ fail (printf "config: %s is %q, which cannot be written; it must be in one of %s" $key $path (join ", " $mounts)) }}{{ end }}
{{- end }}
{{- end }}
{{- range dig "secrets" (list) $config }}
{{- $file := printf "/%s" (default "" .file) }}
{{- $writable := false }}
{{- range append $mounts "/tmp" }}{{ if hasPrefix (printf "%s/" .) (clean $file) }}{{ $writable = true }}{{ end }}{{ end }}
{{- if not $writable }}{{ fail (printf "config: the file %q in secrets cannot be written; it must be in one of /tmp, %s" (default "" .file) (join ", " $mounts)) }}{{ end }}
{{- end }}
{{- $ledger := dig "retrain" "ledger" (dict) $config }}
{{- if and (dig "retrain" "targets" (list) $config) (not (or $ledger.postgres_url_file $ledger.postgres_url_env)) }}
{{- if not (regexMatch "/.+/" (printf "/%s" (trimPrefix "/data/" (printf "/%s" (default "" $ledger.sqlite) | clean)))) }}
{{- fail "config: retrain.ledger.sqlite must be in a directory of its own, such as data/ledger/ledger.db, because the root of some volumes is writable by everyone" }}
{{- end }}
{{- end }}
{{- if and .Values.jobs.enabled (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "jobs.enabled with serviceAccount.create=false requires serviceAccount.name: otherwise, all pods with the account \"default\" could create Jobs" }}
{{- end }}
{{- $namespaces := default (list .Release.Namespace) .Values.jobs.namespaces }}
{{- range dig "retrain" "targets" (list) $config }}
{{- if and .kubernetes (not .kubernetes.url) }}
{{- if not (and $.Values.jobs.enabled (has .kubernetes.namespace $namespaces)) }}
{{- fail (printf "config: target %s creates Jobs in the namespace %s, which requires jobs.enabled=true and the namespace in jobs.namespaces" .name .kubernetes.namespace) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
