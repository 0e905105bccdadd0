package pins

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// onlyOnConda are patterns of packages that are not on PyPI or are not Python packages.
var onlyOnConda = strings.Fields(`
	_.* lib.* ld_impl.* mkl.* cuda.* cudnn pytorch-cuda pytorch-mutex openssl ca-certificates certifi blas
	sqlite zlib zstd xz tk ncurses readline intel-openmp ffmpeg jpeg freetype bzip2 ninja gmp nettle openh264
	lame gnutls swig cmake gcc.* gxx.* conda.* tzdata nodefaults mamba micromamba lz4-c openjpeg icu qt.* expat
	fontconfig vc vc14_runtime vs20[0-9]+_.* ucrt msys2.* m2w64.* .*-base python_abi kernel-headers.* sysroot.*
	binutils.* llvm-openmp glib dbus gst.* xorg.* cairo pango harfbuzz pixman giflib lcms2 lerc pcre2? x26[45]
	aom dav1d svt-av1 alsa-lib nspr nss krb5 c-ares yaml mesa.* patchelf git make pkg-config nodejs openblas
`)

var (
	condaLine = pattern.MustCompile(`^\s*-\s+(?:[\w-]+::)?([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?)\s*([<>=~!]=?[^#=\s,]+(?:,\s*[<>=~!]=?[^#=\s,]+)*)?(=[\w.]+)?\s*(?:#.*)?$`)
	condaOnly = pattern.MustCompile("^(?:" + strings.Join(onlyOnConda, "|") + ")$")
	condaGit  = pattern.MustCompile(`^\s*-\s+(git\+\S+)`)
)

// OfConda returns the requirements in a conda environment file, without packages that exist only in conda.
func OfConda(text string) []string {
	var out []string
	key := ""
	for line := range strings.Lines(text) {
		if strings.IndexAny(line, " \t-#\r\n") != 0 {
			key, _, _ = strings.Cut(line, ":")
		}
		if key != "dependencies" {
			continue
		}
		line = strings.NewReplacer(`"`, "", "'", "").Replace(line)
		if m := condaGit.FindStringSubmatch(line); m != nil {
			out = append(out, m[1])
		}
		if m := condaLine.FindStringSubmatch(line); m != nil && (!condaOnly.MatchString(m[1]) || condaName(m[1]) != m[1]) {
			out = append(out, condaName(m[1])+condaVersion(m[2], m[3]))
		}
	}
	return out
}

// condaVersion converts a conda version to pip's syntax. build is the build string after the version.
func condaVersion(version, build string) string {
	if !strings.HasPrefix(version, "=") || strings.HasPrefix(version, "==") {
		return version
	}
	version = "=" + version
	if strings.Count(version, ".") < 2 && build == "" && !strings.HasSuffix(version, "*") { // conda's 1.2 means 1.2.*
		version += ".*"
	}
	return version
}

// condaName returns the PyPI name of a conda package.
func condaName(name string) string {
	switch name {
	case "pytorch", "pytorch-cpu", "pytorch-gpu":
		return "torch"
	case "opencv", "py-opencv":
		return "opencv-python"
	case "matplotlib-base":
		return "matplotlib"
	case "ray-rllib":
		return "ray[rllib]"
	}
	return name
}
