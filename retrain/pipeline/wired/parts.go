package wired

// TokenOf maps generated files to the lines that pass the token to a stage that sends telemetry.
var TokenOf = map[string]string{
	"pipeline/argo.yaml": "|          - name: REWARDWATCH_TELEMETRY_TOKEN\n            valueFrom:\n              secretKeyRef:\n                name: rewardwatch\n                key: telemetry-token\n                optional: true\n",
	"pipeline/kubernetes.yaml": "|            - name: REWARDWATCH_TELEMETRY_TOKEN\n              valueFrom:\n                secretKeyRef:\n                  name: rewardwatch\n                  key: telemetry-token\n" +
		"                  optional: true\n",
	"pipeline/kubeflow.yaml": "|                - secretKey: telemetry-token\n                  envVar: REWARDWATCH_TELEMETRY_TOKEN\n",
}

// Withdrawal is the lines in a stage's script that stop what shadow.command serves.
const Withdrawal = "|serving=\nwithdraw() {\n  trap '' INT TERM\n|  [ \"$code\" -eq 0 ] \\|\\| [ -z \"$serving\" ] \\|\\| withdraw\n|serving=yes\n"

// TokenFile is the lines in a stage's script that write the telemetry token to a file.
const TokenFile = "|if [ -n \"${REWARDWATCH_TELEMETRY_TOKEN:-}\" ]; then\n  (umask 077 && printf '%s' \"$REWARDWATCH_TELEMETRY_TOKEN\" > \"$token.telemetry\")\n  export REWARDWATCH_TOKEN_FILE=\"$token.telemetry\"\nfi\nexport REWARDWATCH_URL=\"${REWARDWATCH_URL:-$SERVICE}\"\n"
