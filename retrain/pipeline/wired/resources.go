package wired

import (
	"fmt"
	"strings"
)

// Block is a text that a generated file must contain a number of times.
type Block struct {
	Text  string
	Times int
}

// Resources returns the blocks of a generated file that request resources for the stages and mount shared memory in the
// training and the evaluation. cpu is in processors, and memory in Kubernetes notation.
func Resources(file string, cpu, gpu int, memory string, stages int) []Block {
	indent := map[string]string{"pipeline/argo.yaml": "\n        ", "pipeline/kubernetes.yaml": "\n          ", "pipeline/kubeflow.yaml": "\n        "}[file]
	if indent == "" {
		return nil
	}
	const mount = "\n  - name: shared-memory\n    mountPath: /dev/shm\n  # rewardwatch:end"
	const limits = "\nresources:\n  requests:\n    cpu: %s\n    memory: %s\n  limits:\n    cpu: %s\n    memory: %s"
	const limitsOfKubeflow = "\nresources:%s\n  resourceCpuLimit: %s\n  resourceMemoryLimit: %q"
	processors := fmt.Sprintf("%q", fmt.Sprint(cpu))
	heavy, light := mount+fmt.Sprintf(limits, processors, memory, processors, memory), fmt.Sprintf(limits, "100m", "256Mi", `"1"`, memory)
	accelerator := fmt.Sprintf("\n    nvidia.com/gpu: \"%d\"", gpu)
	if file == "pipeline/kubeflow.yaml" {
		heavy = fmt.Sprintf(limitsOfKubeflow, "", processors, memory)
		light = fmt.Sprintf(limitsOfKubeflow, "\n  resourceCpuRequest: 100m\n  resourceMemoryRequest: 256Mi", `"1"`, memory)
		accelerator = fmt.Sprintf("\n  accelerator:\n    resourceType: nvidia.com/gpu\n    resourceCount: \"%d\"", gpu)
	}
	if gpu > 0 {
		heavy += accelerator
	}
	out := []Block{{strings.ReplaceAll(heavy, "\n", indent) + "\n", 2}, {strings.ReplaceAll(light, "\n", indent) + "\n", stages - 2}}
	if file == "pipeline/kubeflow.yaml" {
		out = append(out, Block{"\n          emptyDirMounts:\n            - volumeName: shared-memory # part of the memory limit\n              mountPath: /dev/shm\n              medium: Memory\n", 2})
	}
	return out
}
