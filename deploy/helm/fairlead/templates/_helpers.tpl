{{/*
The parts of the installation as a JSON list: the composer, then each provider that is switched on. A part has its name,
its file of objects, and its values.
*/}}
{{- define "fairlead.parts" -}}
{{- $root := . -}}
{{- $parts := list (dict "name" "composer" "file" "core.yaml" "values" (default dict .Values.composer)) -}}
{{- range $cloud, $values := .Values.providers -}}
{{- $file := printf "clouds/%s.yaml" $cloud -}}
{{- if not ($root.Files.Get (printf "files/%s" $file)) -}}
{{- $known := list -}}
{{- range $path, $_ := $root.Files.Glob "files/clouds/*.yaml" -}}
{{- $known = append $known (base $path | trimSuffix ".yaml") -}}
{{- end -}}
{{- fail (printf "providers.%s: this chart has no such provider; it has %s" $cloud (join ", " $known)) -}}
{{- end -}}
{{- if $values.enabled -}}
{{- $parts = append $parts (dict "name" (printf "provider-%s" $cloud) "cloud" $cloud "file" $file "values" $values) -}}
{{- end -}}
{{- end -}}
{{- toJson $parts -}}
{{- end -}}

{{/* The image of a process: `name` as kustomize has it, from the repository, by digest or tag. */}}
{{- define "fairlead.image" -}}
{{- $image := .root.Values.image -}}
{{- with $image.repository }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .name -}}
{{- if .values.digest }}@{{ .values.digest }}{{ else }}:{{ default .root.Chart.AppVersion $image.tag }}{{ end -}}
{{- end -}}

{{/* A Deployment of kustomize with the values of its process. */}}
{{- define "fairlead.deployment" -}}
{{- $root := .root -}}{{- $values := .values -}}{{- $deployment := .object -}}
{{- $template := $deployment.spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $container "image" (include "fairlead.image" (dict "root" $root "name" $container.image "values" $values)) -}}
{{- $_ := set $container "imagePullPolicy" $root.Values.image.pullPolicy -}}
{{- $args := concat $container.args (list (printf "--log-level=%s" $root.Values.logLevel)) -}}
{{- $_ := set $container "args" (concat $args (default list $values.args)) -}}
{{- with $values.env }}{{- $_ := set $container "env" (concat (default list $container.env) .) -}}{{- end -}}
{{- with $values.volumeMounts }}{{- $_ := set $container "volumeMounts" (concat (default list $container.volumeMounts) .) -}}{{- end -}}
{{- with $values.volumes }}{{- $_ := set $pod "volumes" (concat (default list $pod.volumes) .) -}}{{- end -}}
{{- with $values.resources }}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- with $root.Values.image.pullSecrets }}{{- $_ := set $pod "imagePullSecrets" . -}}{{- end -}}
{{- if hasKey $values "replicas" }}{{- $_ := set $deployment.spec "replicas" $values.replicas -}}{{- end -}}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "topologySpreadConstraints" -}}
{{- if hasKey $values $field }}{{- $_ := set $pod $field (index $values $field) -}}{{- end -}}
{{- end -}}
{{- with $values.podLabels }}{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels .) -}}{{- end -}}
{{- with $values.podAnnotations }}{{- $_ := set $template.metadata "annotations" . -}}{{- end -}}
{{- toYaml $deployment -}}
{{- end -}}

{{/* What may leave the pods of a process, as a list of rules of a NetworkPolicy. */}}
{{- define "fairlead.egress" -}}
{{- $policy := .root.Values.networkPolicy -}}
- to: {{ toJson $policy.dns.to }}
  ports:
  {{- range $policy.dns.ports }}
  - {port: {{ . }}, protocol: UDP}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
{{ include "fairlead.rule" $policy.apiServer }}
{{- if .cloud }}
{{ include "fairlead.rule" $policy.clouds }}
{{- end }}
{{- range .values.databases }}
- to: [{ipBlock: {cidr: {{ .cidr | quote }}}}]
  ports: [{port: {{ default 5432 .port }}, protocol: TCP}]
{{- end }}
{{- with .values.egress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "fairlead.rule" -}}
- to: {{ toJson .to }}
  ports:
  {{- range .ports }}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
{{- end -}}
