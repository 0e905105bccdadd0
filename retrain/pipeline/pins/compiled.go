package pins

import "strings"

// builds are packages that a compiler alone builds where they have no files: other sources need more than that.
var builds = []string{"box2d-py", "evdev", "hnswlib", "mujoco-py", "nes-py", "pybullet"}

// Compiled returns a package, of those with versions, that is compiled when it is installed with a version of Python,
// which the slim images cannot do; "" if none is.
func Compiled(python string, versions map[string]string) string {
	for _, name := range builds {
		v := versions[name]
		if name == "nes-py" && Allowed(">=9", v) { // for the versions of Python that it is for
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

// Compiling returns the image of a version of Python that has a compiler.
func Compiling(python string) string { return strings.Replace(Base(python), "slim-", "", 1) }

// Builders returns the versions of setuptools and wheel that can build what of the requirements has no files: Gym before
// 0.22 describes its extras in a way that later ones refuse. It returns none if the current ones can.
func Builders(requirements []string) []string {
	for _, r := range requirements {
		if name, version, ok := strings.Cut(r, "=="); ok && (name == "gym" || strings.HasPrefix(name, "gym[")) && Allowed("<0.22", version) {
			return []string{"setuptools==65.5.1", "wheel==0.38.4"}
		}
	}
	return nil
}
