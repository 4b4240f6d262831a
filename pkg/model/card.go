// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

// The annotations by which a pod chooses among vGPUs (Volcano pkg/scheduler/api/devices/nvidia/vgpu).
const (
	// VGPUModeAnnotation is the mode that cards must be in.
	VGPUModeAnnotation = "volcano.sh/vgpu-mode"
	// GPUTypeAnnotation and NoGPUTypeAnnotation are parts of the names of models, with commas.
	GPUTypeAnnotation   = "nvidia.com/use-gputype"
	NoGPUTypeAnnotation = "nvidia.com/nouse-gputype"
	// GPUUUIDAnnotation and NoGPUUUIDAnnotation are UUIDs of cards, with commas.
	GPUUUIDAnnotation   = "volcano.sh/vgpu-use-gpuuuid"
	NoGPUUUIDAnnotation = "volcano.sh/vgpu-nouse-gpuuuid"
	// VGPUGroupPolicyAnnotation tells how pods of a PodGroup share cards.
	VGPUGroupPolicyAnnotation = "volcano.sh/vgpu-podgroup-policy"
)
