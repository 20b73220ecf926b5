{{- define "sluice.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* The pod of a role: root, role, values of the role. */}}
{{- define "sluice.pod" -}}
metadata:
  labels:
    {{- include "sluice.labels" . | nindent 4 }}
  annotations:
    checksum/config: {{ include (print .root.Template.BasePath "/configmap.yaml") .root | sha256sum }}
    {{- if .root.Values.metricsPort }}
    prometheus.io/scrape: "true"
    prometheus.io/path: /metrics
    prometheus.io/port: {{ .root.Values.metricsPort | quote }}
    {{- end }}
spec:
  serviceAccountName: {{ include "sluice.name" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "sluice.selector" . | nindent 10 }}
  containers:
    - name: sluice
      image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: ["serve", "--role", {{ .role | quote }}]
      env:
        - name: SLUICE__SERVER__LISTEN
          value: "0.0.0.0:8080"
        {{- if eq .role "api" }}
        - name: SLUICE__SERVER__DRAIN_NOTICE
          value: {{ .values.drainNotice | quote }}
        {{- end }}
        {{- if eq .role "worker" }}
        # Different in each pod, and the same after a restart: a worker keeps its partitions.
        - name: SLUICE__LOG__INSTANCE
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        {{- if not (hasKey .root.Values.config "SERVER__TRUSTED_PROXIES") }}
        - name: SLUICE__SERVER__TRUSTED_PROXIES
          value: {{ ternary "1" "0" .root.Values.ingress.enabled | quote }}
        {{- end }}
        {{- if .root.Values.metricsPort }}
        - name: SLUICE__TELEMETRY__METRICS
          value: "0.0.0.0:{{ .root.Values.metricsPort }}"
        {{- end }}
        {{- range .root.Values.secrets }}
        - name: SLUICE__{{ .key }}
          valueFrom:
            secretKeyRef:
              name: {{ .secret | quote }}
              key: {{ .field | quote }}
        {{- end }}
      envFrom:
        - configMapRef:
            name: {{ include "sluice.name" .root }}
      ports:
        - {name: http, containerPort: 8080}
        {{- if .root.Values.metricsPort }}
        - {name: metrics, containerPort: {{ .root.Values.metricsPort }}}
        {{- end }}
      # Why not /readyz: it answers 503 while the cache or the database is down, which is so for every replica at once.
      # A pod that is taken out for it would only add to the outage.
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /drainz, port: http}
        periodSeconds: 2
        failureThreshold: 1
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: ["ALL"]
      volumeMounts:
        - {name: data, mountPath: /data}
  {{- with .values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
