package wired

import "strings"

// Repeated returns the beginnings of lines that a generated file must contain a certain number of times. stages is the
// number of stages of the pipeline, and sending the number of those that send telemetry. enterprise reports whether the
// workflow is for a GitHub Enterprise Server.
func Repeated(file string, stages, sending int, enterprise bool) []Block {
	switch {
	case strings.HasPrefix(file, ".github/workflows/"):
		out := []Block{
			{"\n    runs-on: ", stages + 2},
			{"\n    timeout-minutes: ", stages + 2},
			{"\n    steps:\n", stages + 2},
			{"\n      - uses: actions/checkout@", stages + 1},
			{"\n        with:\n          persist-credentials: false\n", stages + 1},
			{"\n      - uses: actions/download-artifact@", stages - 1},
			{"\n        with:\n          name: work\n          path: work\n", 2*stages - 1},
			{"\n      - uses: actions/upload-artifact@", stages},
			{"\n          REWARDWATCH_STATUS_TOKEN: ${{ secrets.REWARDWATCH_STATUS_TOKEN }}\n", stages + 1},
			{"\n          REWARDWATCH_TELEMETRY_TOKEN: ${{ secrets.REWARDWATCH_TELEMETRY_TOKEN }}\n", sending},
			{"\n          REGISTRY_USER: ${{ secrets.REGISTRY_USER", stages + 1},
			{"\n          REGISTRY_PASSWORD: ${{ secrets.REGISTRY_PASSWORD", stages + 1},
		}
		if !enterprise {
			out = append(out, Block{"\n          overwrite: true\n", stages})
		}
		return out
	case file == "pipeline/argo.yaml":
		return []Block{
			{"\n          - name: REWARDWATCH_STATUS_TOKEN\n            valueFrom:\n              secretKeyRef:\n                name: rewardwatch\n                key: status-token\n                optional: true\n", stages + 1},
			{"\n        securityContext:\n          allowPrivilegeEscalation: false\n          capabilities:\n            drop: [ALL]\n", stages + 1},
			{"\n          - name: REQUEST\n", stages + 1},
			{"\n          - name: RUN\n", stages + 1},
		}
	}
	return nil
}
