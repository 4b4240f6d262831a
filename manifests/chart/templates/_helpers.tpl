{{/*
The objects are those of ../deploy, ../rbac and so on: files/ leads to these folders. Templates read a file and change what values say, so that nothing is
written down twice.
*/}}

{{/* caldera.text is a file of files/, with the release's namespace for the one that it is written for. */}}
{{- define "caldera.text" -}}
{{- $text := .root.Files.Get (printf "files/%s" .file) -}}
{{- if not $text -}}
{{- fail (printf "the chart has no files/%s: it was copied without what its links lead to; take the whole of manifests, or a package made by \"helm package\"" .file) -}}
{{- end -}}
{{- $text | replace "caldera-system" .root.Release.Namespace -}}
{{- end -}}

{{/* caldera.object writes an object, with the labels that objects of a release have. */}}
{{- define "caldera.object" -}}
{{- $object := .object -}}
{{- if $object.Error -}}
{{- fail (printf "reading files/%s: %s" .file $object.Error) -}}
{{- end -}}
{{- $labels := dict "app.kubernetes.io/managed-by" .root.Release.Service "helm.sh/chart" (printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_")) -}}
{{- $_ := set $object.metadata "labels" (merge $labels (default dict $object.metadata.labels)) -}}
---
{{ toYaml $object }}
{{ end -}}

{{/* caldera.file writes all objects of a file. */}}
{{- define "caldera.file" -}}
{{- $in := . -}}
{{- range splitList "\n---\n" (include "caldera.text" .) -}}
{{- include "caldera.object" (dict "root" $in.root "file" $in.file "object" (fromYaml .)) -}}
{{- end -}}
{{- end -}}

{{/* caldera.selector is what the scheduler's pods are known by. */}}
{{- define "caldera.selector" -}}
app.kubernetes.io/name: caldera
app.kubernetes.io/component: scheduler
{{- end -}}

{{/* caldera.config is the KubeSchedulerConfiguration in a file of files/config, with the fields of schedulerConfig in the place of its own. */}}
{{- define "caldera.config" -}}
{{- $text := include "caldera.text" . -}}
{{- if .root.Values.schedulerConfig -}}
{{- toYaml (mergeOverwrite (fromYaml $text) (deepCopy .root.Values.schedulerConfig)) -}}
{{- else -}}
{{- $text -}}
{{- end -}}
{{- end -}}

{{/* caldera.volcanoConfigMap is the ConfigMap with a volcano-scheduler.conf; empty for none. */}}
{{- define "caldera.volcanoConfigMap" -}}
{{- if .Values.volcanoConfExistingConfigMap -}}
{{- if .Values.volcanoConf -}}
{{- fail "volcanoConf and volcanoConfExistingConfigMap are both set: leave one of them empty" -}}
{{- end -}}
{{- .Values.volcanoConfExistingConfigMap -}}
{{- else if .Values.volcanoConf -}}
caldera-volcano-conf
{{- end -}}
{{- end -}}

{{/* caldera.certificateSecret is the Secret with the certificate for views; empty if the scheduler makes its own. */}}
{{- define "caldera.certificateSecret" -}}
{{- with .Values.visibility -}}
{{- if and .existingSecret .certManager.enabled -}}
{{- fail "visibility.existingSecret and visibility.certManager.enabled are both set: take one of them" -}}
{{- end -}}
{{- if and .existingSecret (not .caBundle) -}}
{{- fail "visibility.existingSecret needs visibility.caBundle: the authority, in PEM, by which the cluster's API server knows its certificate" -}}
{{- end -}}
{{- if and .caBundle (not .existingSecret) -}}
{{- fail "visibility.caBundle is of use with visibility.existingSecret only: set both or neither" -}}
{{- end -}}
{{- if .certManager.enabled -}}
caldera-visibility-tls
{{- else -}}
{{- .existingSecret -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* caldera.args are the arguments of the scheduler, as a list in YAML. */}}
{{- define "caldera.args" -}}
- --config=/etc/caldera/{{ eq .Values.mode "instead" | ternary "scheduler-config.yaml" "volcano-only.yaml" }}
{{- if .Values.visibility.enabled }}
- --visibility-port={{ .Values.visibility.port }}
{{- if include "caldera.certificateSecret" . }}
- --visibility-tls-cert-file=/etc/caldera-visibility/tls.crt
- --visibility-tls-private-key-file=/etc/caldera-visibility/tls.key
{{- end }}
{{- end }}
{{- if include "caldera.volcanoConfigMap" . }}
- --volcano-conf=/etc/volcano/volcano-scheduler.conf
{{- end }}
{{- with .Values.featureGates }}
{{- $gates := list }}
{{- range $name, $on := . }}
{{- $gates = append $gates (printf "%s=%t" $name $on) }}
{{- end }}
- --feature-gates={{ join "," $gates }}
{{- end }}
- --v={{ .Values.verbosity }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* caldera.limits are limits of tenants as the policies read them: a key ends in the name of a namespace, and lists are one text. */}}
{{- define "caldera.limits" -}}
{{- $suffix := .suffix -}}
{{- $data := dict -}}
{{- range $name, $limit := .limits -}}
{{- $text := toString $limit -}}
{{- if kindIs "slice" $limit -}}
{{- $text = join "," $limit -}}
{{- else if kindIs "float64" $limit -}}
{{- $text = toString (int64 $limit) -}}
{{- end -}}
{{- $_ := set $data (printf "%s%s" $name $suffix) $text -}}
{{- end -}}
{{- toYaml $data -}}
{{- end -}}
