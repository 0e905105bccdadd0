package wired

import (
	"fmt"
	"strings"
)

// Resources returns the lines with the shared memory and the resources of a training in a generated file, "" for a file
// without them. cpu is in processors, and memory as Kubernetes writes it.
func Resources(file string, cpu, gpu int, memory string) string {
	indent := map[string]string{"pipeline/argo.yaml": "\n        ", "pipeline/kubernetes.yaml": "\n          ", "pipeline/kubeflow.yaml": "\n        "}[file]
	if indent == "" {
		return ""
	}
	block := "\n  - name: shared-memory\n    mountPath: /dev/shm\n  # rewardwatch:end" +
		fmt.Sprintf("\nresources:\n  requests:\n    cpu: \"%[1]d\"\n    memory: %[2]s\n  limits:\n    cpu: \"%[1]d\"\n    memory: %[2]s", cpu, memory)
	switch {
	case file == "pipeline/kubeflow.yaml":
		block = fmt.Sprintf("\nresources:\n  resourceCpuLimit: \"%d\"\n  resourceMemoryLimit: %q", cpu, memory)
		if gpu > 0 {
			block += fmt.Sprintf("\n  accelerator:\n    resourceType: nvidia.com/gpu\n    resourceCount: \"%d\"", gpu)
		}
	case gpu > 0:
		block += fmt.Sprintf("\n    nvidia.com/gpu: \"%d\"", gpu)
	}
	return strings.ReplaceAll(block, "\n", indent) + "\n"
}
