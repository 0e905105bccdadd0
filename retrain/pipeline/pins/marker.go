package pins

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var markerToken = pattern.MustCompile(`^\s*(\(|\)|===|[<>=!~]=|[<>^~]|"[^"]*"|'[^']*'|[A-Za-z_][A-Za-z0-9_.]*)`)

// Applies reports whether a PEP 508 marker is true in the image: Linux on x86_64, a CPython version such as 3.11, and
// no extra. An unreadable marker counts as true, because an unneeded package does less harm than a missing one.
func Applies(marker, python string) bool {
	r := markerReader{values: map[string]string{
		"python_version": python, "python_full_version": python + ".99", "implementation_version": python + ".99", "sys_platform": "linux", "platform_system": "Linux",
		"platform_machine": "x86_64", "os_name": "posix", "implementation_name": "cpython", "platform_python_implementation": "CPython", "platform_release": "", "platform_version": "",
		"extra": "", "sys.platform": "linux", "os.name": "posix", "platform.machine": "x86_64", "platform.python_implementation": "CPython", "python_implementation": "CPython",
	}}
	for rest := strings.TrimSpace(marker); rest != ""; rest = strings.TrimSpace(rest) {
		m := markerToken.FindStringSubmatch(rest)
		if m == nil {
			return true
		}
		r.tokens = append(r.tokens, m[1])
		rest = rest[len(m[0]):]
	}
	if len(r.tokens) > 200 { // longer than any real marker
		return true
	}
	holds := r.either()
	return holds || r.odd || len(r.tokens) > 0
}

// markerReader evaluates a marker by recursive descent, consuming its tokens.
type markerReader struct {
	tokens []string
	values map[string]string
	odd    bool // whether the text is not a valid marker
}

func (r *markerReader) next() string {
	if len(r.tokens) == 0 {
		r.odd = true
		return ""
	}
	token := r.tokens[0]
	r.tokens = r.tokens[1:]
	return token
}

func (r *markerReader) takes(token string) bool {
	if len(r.tokens) > 0 && r.tokens[0] == token {
		r.tokens = r.tokens[1:]
		return true
	}
	return false
}

func (r *markerReader) either() bool {
	holds := r.both()
	for r.takes("or") {
		also := r.both()
		holds = holds || also
	}
	return holds
}

func (r *markerReader) both() bool {
	holds := r.one()
	for r.takes("and") {
		also := r.one()
		holds = holds && also
	}
	return holds
}

func (r *markerReader) one() bool {
	if r.takes("(") {
		holds := r.either()
		if !r.takes(")") {
			r.odd = true
		}
		return holds
	}
	left, leftIsVersion := r.value(r.next())
	operator := r.next()
	if operator == "not" {
		operator += " " + r.next()
	}
	right, rightIsVersion := r.value(r.next())
	switch {
	case operator == "in":
		return slices.Contains(alternatives(right), left) || strings.Contains(right, left) && !leftIsVersion
	case operator == "not in":
		return !slices.Contains(alternatives(right), left) && (leftIsVersion || !strings.Contains(right, left))
	case rightIsVersion: // '3.8' <= python_version
		turned := strings.NewReplacer("<", ">", ">", "<").Replace(operator)
		return Allowed(turned+left, right)
	case leftIsVersion:
		return Allowed(operator+right, left)
	case operator == "==" || operator == "===":
		return left == right
	case operator == "!=":
		return left != right
	}
	r.odd = true
	return true
}

// value returns the value of a token, and whether the token is a variable for a Python version.
func (r *markerReader) value(token string) (value string, version bool) {
	if token != "" && (token[0] == '"' || token[0] == '\'') {
		return token[1 : len(token)-1], false
	}
	value, known := r.values[token]
	if !known {
		r.odd = true
	}
	return value, strings.HasSuffix(token, "_version") && strings.Contains(token, "python") || token == "implementation_version"
}

func alternatives(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", |", r) })
}

// Within returns the marker that restricts a variable to a Poetry specification.
func Within(variable, wanted string) string {
	var bounds []string
	for part := range strings.SplitSeq(wanted, ",") {
		m := oneBound.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return ""
		}
		bounds = append(bounds, variable+" "+cmp.Or(m[1], "==")+" '"+m[2]+"'")
	}
	return strings.Join(bounds, " and ")
}
