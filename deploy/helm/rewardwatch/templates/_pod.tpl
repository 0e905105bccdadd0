{{- define "rewardwatch.probe" -}}
{{- if .root.Values.http.authenticated }}
tcpSocket: {port: http}
{{- else }}
httpGet: {path: {{ .path }}, port: http, scheme: {{ ternary "HTTPS" "HTTP" .root.Values.http.tls }}}
{{- end }}
{{ with .probe }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "rewardwatch.pod" -}}
metadata:
  annotations:
    checksum/config: {{ printf "%s%s%s" .Values.config (toJson .Values.recipes) (toJson .Values.jobs) | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- include "rewardwatch.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "rewardwatch.serviceAccount" . | quote }}
  automountServiceAccountToken: {{ .Values.jobs.enabled }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: rewardwatch
      image: {{ include "rewardwatch.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [run, --config, /etc/rewardwatch/config/rewardwatch.yml]
      {{- with .Values.secretEnv }}
      env:
        {{- range $name, $from := . }}
        - name: {{ $name }}
          valueFrom: {secretKeyRef: {name: {{ $from.secret | quote }}, key: {{ $from.key | quote }}}}
        {{- end }}
      {{- end }}
      ports: [{name: http, containerPort: 9464}]
      startupProbe: {{- include "rewardwatch.probe" (dict "root" . "path" "/-/healthy" "probe" .Values.probes.startup) | nindent 8 }}
      livenessProbe: {{- include "rewardwatch.probe" (dict "root" . "path" "/-/healthy" "probe" .Values.probes.liveness) | nindent 8 }}
      readinessProbe: {{- include "rewardwatch.probe" (dict "root" . "path" "/-/ready" "probe" .Values.probes.readiness) | nindent 8 }}
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: config, mountPath: /etc/rewardwatch/config, readOnly: true}
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.recipes }}
        - {name: recipes, mountPath: /etc/rewardwatch/recipes, readOnly: true}
        {{- end }}
        {{- if .Values.jobs.manifests }}
        - {name: jobs, mountPath: /etc/rewardwatch/jobs, readOnly: true}
        {{- end }}
        {{- range $i, $name := .Values.secrets }}
        - {name: secret-{{ $i }}, mountPath: {{ printf "/etc/rewardwatch/secrets/%s" $name | quote }}, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - {name: config, configMap: {name: {{ include "rewardwatch.fullname" . | quote }}}}
    - {name: tmp, emptyDir: {}}
    {{- if include "rewardwatch.cluster" . }}
    - {name: data, emptyDir: {}}
    {{- end }}
    {{- if .Values.recipes }}
    - {name: recipes, configMap: {name: {{ include "rewardwatch.fullname" . }}-recipes}}
    {{- end }}
    {{- if .Values.jobs.manifests }}
    - {name: jobs, configMap: {name: {{ include "rewardwatch.fullname" . }}-jobs}}
    {{- end }}
    {{- range $i, $name := .Values.secrets }}
    - {name: secret-{{ $i }}, secret: {secretName: {{ $name | quote }}, defaultMode: 0440}}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" }}
  {{- with get $.Values $key }}
  {{ $key }}: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end }}
