package pins

import "strings"

// builds are packages that need only a compiler to be built where they have no files. Other packages without files need
// more.
var builds = []string{"box2d-py", "evdev", "hnswlib", "mujoco-py", "nes-py", "pybullet", "vec-noise"}

// Compiled returns a package in versions that is compiled when it is installed with a Python version, or "". The slim
// images have no compiler.
func Compiled(python string, versions map[string]string) string {
	for _, name := range builds {
		v := versions[name]
		if name == "nes-py" && Allowed(">=9", v) { // it has files for each Python version that it supports
			continue
		}
		if v != "" && (len(windows(name)) == 0 || !hasFiles(Package{name, "==" + v}, python)) {
			return name + " " + v
		}
	}
	if v := versions["pynput"]; v != "" && Allowed(">=1.7", v) {
		return "evdev for pynput"
	}
	return ""
}

// Compiling returns the image of a Python version that contains a compiler.
func Compiling(python string) string { return strings.Replace(Base(python), "slim-", "", 1) }

// Builders returns the versions of setuptools and wheel that are needed to build the requirements without files, or
// none if current versions can. Gym before 0.22 describes its extras in a way that later versions reject.
func Builders(requirements []string) []string {
	for _, r := range requirements {
		if name, version, ok := strings.Cut(r, "=="); ok && (name == "gym" || strings.HasPrefix(name, "gym[")) && Allowed("<0.22", version) {
			return []string{"setuptools==65.5.1", "wheel==0.38.4"}
		}
	}
	return nil
}
