package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pod fields between markers can be edited, and invalid YAML there is reported at its place.
func TestLinesBetweenMarks(t *testing.T) {
	w := mustRun(t)
	for name, test := range map[string]struct{ file, old, now, want string }{
		"token":         {"kubernetes.yaml", "      automountServiceAccountToken: false\n", "      automountServiceAccountToken: true\n      serviceAccountName: robots\n", ""},
		"volume":        {"kubernetes.yaml", "            medium: Memory\n", "            medium: Memory\n            sizeLimit: 2Gi\n        - name: data\n          persistentVolumeClaim:\n            claimName: data\n", ""},
		"mount":         {"kubernetes.yaml", "              mountPath: /dev/shm\n", "              mountPath: /dev/shm\n            - name: data\n              mountPath: /data\n", ""},
		"no memory":     {"kubernetes.yaml", "              cpu: \"1\"\n", "", ""},
		"Argo's volume": {"argo.yaml", "        medium: Memory\n", "        medium: Memory\n        sizeLimit: 2Gi\n", ""},
		"Kubeflow":      {"kubeflow.yaml", "              medium: Memory\n", "              medium: Memory\n              sizeLimit: 2Gi\n", ""},
		"key twice": {
			"kubernetes.yaml", "      # rewardwatch:keep pod\n", "      # rewardwatch:keep pod\n      volumes:\n        - name: data\n          emptyDir: {}\n",
			`kubernetes.yaml:38:1: is not YAML: mapping key "volumes" already defined at [28:7], with the lines between keep markers`,
		},
		"key twice between them": {
			"kubernetes.yaml", "      automountServiceAccountToken: false\n", "      hostNetwork: true\n      hostNetwork: false\n",
			`kubernetes.yaml:25:1: is not YAML: mapping key "hostNetwork" already defined at [24:7]`,
		},
		"no YAML": {"argo.yaml", "  serviceAccountName: default\n", "  serviceAccountName: [default\n", "argo.yaml:"},
	} {
		dir := t.TempDir()
		if err := Write(newFiles(w.Artefacts), dir); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "pipeline", test.file)
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), test.old) {
			t.Fatalf("%s: %v, without %q", name, err, test.old)
		}
		changed := strings.Replace(string(text), test.old, test.now, 1)
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		changes, err := Changes(w, dir)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		for i := range changes {
			if err == nil && changes[i].Path == "pipeline/"+test.file && changes[i].After != changed {
				t.Errorf("%s: the lines are not kept", name)
			}
		}
	}
}
