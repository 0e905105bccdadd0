// Package secrets finds credentials in plain text, which must not be in a repository.
package secrets

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rule matches one form of credential.
type rule struct {
	re    *regexp.Regexp
	digit bool // whether the match must contain a digit, which names in code often lack
}

// notCredentials matches keys that do not refer to credentials, such as cache_key.
var notCredentials = regexp.MustCompile(`(?i)^(?:[a-z0-9]+[_-])*(?:public|cache|sort|partition|primary|foreign|hash|idempotency|dedup)[_-]?key\b`)

var rules = []rule{
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22}|glpat-[A-Za-z0-9_-]{20}|xox[baprs]-[A-Za-z0-9-]{10}|whsec_[A-Za-z0-9+/=]{24}|-----BEGIN [A-Z ]*PRIVATE KEY`), false},
	{regexp.MustCompile(`\bhf_[A-Za-z0-9]{30}|\bAIza[A-Za-z0-9_-]{35}|\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{50}|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}`), false},
	{regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}|(?i)\bbearer\s+[A-Za-z0-9+/][A-Za-z0-9._~+/-]{15,}`), true},
	{regexp.MustCompile(`(?i)(?:password|passwd|token|api_?key|secret)["']?\s*[=:]\s*["']?[A-Za-z0-9+_-][A-Za-z0-9+/_-]{19}`), false},
	{regexp.MustCompile(`(?i)(?:password|passwd|passphrase)["']?\s*[=:]\s*(?:"[^"$<{%][^"]{2,}"|'[^'$<{%][^']{2,}')`), false},
	{regexp.MustCompile(`\b(?:[A-Z0-9]+_)+PASS["']?\s*[=:]\s*(?:"[^"$<{%][^"]{2,}"|'[^'$<{%][^']{2,}')`), false},
	{regexp.MustCompile(`(?:--(?:[a-z]+-)*(?:password|passwd|passphrase)|\b(?:[A-Z0-9]+_)*(?:PASSWORD|PASSWD|PASSPHRASE)|\b(?:[A-Z0-9]+_)+PASS)=[^\s"'$<{%(/.][^\s"'$]{2,}`), false},
	{regexp.MustCompile(`--(?:[a-z]+-)*(?:password|passwd|passphrase)[ \t]+["']?[^\s"'$<{%(/.-][^\s"'$]{2,}`), true},
	{regexp.MustCompile(`(?:(?i:password|passwd|passphrase)|\b(?:[A-Z0-9]+_)+PASS)(?:=|:\s+)[^\s"'$<{%(\[/.][^\s"'$(\[]{3,}`), true},
	{regexp.MustCompile(`--(?:[a-z]+-)*(?:token|api-key|secret)[= \t]+[A-Za-z0-9+_-][A-Za-z0-9+/._-]{7,}`), true},
	{regexp.MustCompile(`\b(?:[A-Z0-9]+_)*(?:TOKEN|API_?KEY|KEY|SECRET)["']?(?:=|:\s*)["']?[A-Za-z0-9+_-][A-Za-z0-9+/._-]{7,}`), true},
	{regexp.MustCompile(`\b[rs]k_(?:live|test)_[A-Za-z0-9]{10}|\bwandb\s+login\s+(?:--\S+\s+)*[0-9a-f]{40}\b`), false},
	{regexp.MustCompile(`\bcurl\b[^\n]*\s(?:-u|--user)[= \t]*["']?[^\s:"'$<]+:[^\s"'$<{%(/.][^\s"'$]*`), false},
	{regexp.MustCompile(`://[A-Za-z0-9_-]{20,}@`), true},
	{regexp.MustCompile(`\bdckr_pat_[A-Za-z0-9_-]{20}|\bxapp-[0-9A-Za-z-]{20}|\bgl(?:rt|dt|ptt|soat|cbt)-[A-Za-z0-9_-]{20}|\bglsa_[A-Za-z0-9]{20}|\bshp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|\bATATT3[A-Za-z0-9_=-]{20}`), false},
	{regexp.MustCompile(`\bdop_v1_[0-9a-f]{64}|\bhv[sb]\.[A-Za-z0-9_-]{24}|\bdapi[0-9a-f]{32}|\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|\bya29\.[A-Za-z0-9_-]{20}|\bAGE-SECRET-KEY-1[A-Z0-9]{40}|\brubygems_[0-9a-f]{48}|\blin_api_[A-Za-z0-9]{32}`), false},
	{regexp.MustCompile(`(?i)\b(?:[a-z0-9]+[_-])*[a-z0-9]*key["']?\s*[=:]\s*["']?(?:[0-9a-f]{32}|[A-Za-z0-9+/]{40})`), true},
	{regexp.MustCompile(`(?i)\b(?:x-)?(?:[a-z]+-)*(?:api-?key|token|secret|auth)(?:-[a-z]+)*:\s*["']?[A-Za-z0-9+/_=.-]{16}`), true},
	{regexp.MustCompile(`(?i)\bauthorization["']?\s*[:=]\s*["']?(?:basic|token|apikey|key|digest)\s+[A-Za-z0-9+/_=.-]{12}`), false},
	{regexp.MustCompile(`\bhooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/T?[A-Za-z0-9]+/[A-Za-z0-9]+/[A-Za-z0-9/_-]{8,}|\bdiscord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{8,}`), false},
	{regexp.MustCompile(`\.webhook\.office\.com/webhookb2/[0-9a-f-]{36}|\bapi\.telegram\.org/bot[0-9]+:[A-Za-z0-9_-]{20,}|\bchat\.googleapis\.com/v1/spaces/\S*[?&]token=[^\s$&"'<{]{8,}`), false},
	{mysql, false},
	{regexp.MustCompile(`\bsshpass[ \t]+-p[ \t]*["']?[^\s"'$<{%(][^\s"'$]{2,}`), false},
	{address, false},
}

var (
	// mysql matches a MySQL client with -p and a password, at the beginning of a command or after a command that starts
	// another one.
	mysql = regexp.MustCompile(`(?:(?m:^)[ \t]*|[;&|("'` + "`" + `][ \t]*|(?:(?m:^)|[\s;&|("'])` + starts + `[ \t]+)(?:[^\s"'=:]*/)?` +
		`(?:mysql|mariadb-?)(?:dump|admin|import|show|check|sh|slap|binlog)?(?:[ \t]+[^\s|;&]+)*[ \t]+-p["']?[^\s"'$<{%(][^\s"'$]{2,}`)
	// password matches the value of -p, and notPassword the values that are ports or parts of a longer option instead.
	password    = regexp.MustCompile(`[ \t]-p["']?([^\s"'$<{%(][^\s"'$]{2,})`)
	notPassword = regexp.MustCompile(`^(?:[0-9.:/-]+(?:tcp|udp)?|(?:rotocol|rint|rint-defaults|ort|rompt|ager|ipe|lugin[-_]dir)(?:=.*)?)$`)
)

// starts matches variable settings and commands that start another command, with options and the name of a user or
// host.
const starts = `(?:[A-Za-z_]\w*=\S*|(?:exec|sudo|env|nohup|time|timeout|nice|command|ssh|if|then|else|do|RUN|!|--)(?:[ \t]+-\S+)*(?:[ \t]+[^\s-]\S*)?(?:[ \t]+--)?)`

// address matches the user and password of a URL.
var address = regexp.MustCompile(`://[^/\s:@"',<>]*:[^/\s@"',<>$][^/\s@"',<>]*@`)

// marks are lowercase texts, at least one of which is part of every credential that the rules match, and that few other
// lines contain. Only texts with one of them are matched with the rules, which are slow.
var marks = []string{
	"akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "whsec_", "private key", "pass",
	"token", "api-key", "secret", "key", "bearer", "hf_", "sk-", "k_live_", "k_test_", "wandb", "curl", "aiza", "npm_", "pypi-", "eyj", "://",
	"dckr_pat_", "xapp-", "glrt-", "gldt-", "glptt-", "glsoat-", "glcbt-", "glsa_", "shpat_", "shpss_", "shpca_", "shppa_", "atatt3",
	"dop_v1_", "hvs.", "hvb.", "dapi", "sg.", "ya29.", "rubygems_", "lin_api_", "auth",
	"hooks.slack", "discord", "webhook", "telegram", "googleapis", "mysql", "mariadb",
}

// Message describes a text for which Found returns true, without repeating the credential.
const Message = "looks like a secret in plain text"

// Found reports whether a text contains what looks like a credential.
func Found(text string) bool {
	lower := strings.ToLower(text)
	if !slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(lower, mark) }) {
		return false
	}
	return slices.ContainsFunc(rules, func(r rule) bool {
		return slices.ContainsFunc(r.re.FindAllString(text, -1), r.takes)
	})
}

// inMember reports whether a member of a mapping looks like a credential, by its value alone or together with its key.
func inMember(key, value string) bool { return Found(value) || Found(key+`: "`+value+`"`) }

func (r rule) takes(found string) bool {
	if r.re == mysql {
		return slices.ContainsFunc(password.FindAllStringSubmatch(found, -1), func(m []string) bool { return !notPassword.MatchString(m[1]) })
	}
	return (!r.digit || strings.ContainsAny(found, "0123456789")) && !notCredentials.MatchString(found)
}

// Hide returns a text with its credentials replaced by "…", for output.
func Hide(text string) string {
	text = address.ReplaceAllString(text, "://…@")
	for _, r := range rules {
		text = r.re.ReplaceAllStringFunc(text, func(found string) string {
			if !r.takes(found) {
				return found
			}
			return "…"
		})
	}
	return text
}

// InValues returns the sorted paths, such as a.b[1], of values that look like credentials. Besides the value itself, it
// considers the key of the value, and the option or the program before a word of a command.
func InValues(values map[string]string) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(values)) {
		value, before, program := values[path], "", ""
		if list, number, ok := strings.Cut(strings.TrimSuffix(path, "]"), "["); ok {
			if i, err := strconv.Atoi(number); err == nil {
				before, program = values[fmt.Sprintf("%s[%d]", list, i-1)], values[list+"[0]"]
			}
		}
		option := strings.HasPrefix(before, "--") && Found(before+"="+value) && !Found(before) ||
			isOfProgram.MatchString(program) && Found(program+" "+before+" "+value) && !Found(program+" "+before)
		if inMember(path[strings.LastIndex(path, ".")+1:], value) || option {
			out = append(out, path)
		}
	}
	return out
}

// isOfProgram matches programs whose arguments may be credentials without an option that says so.
var isOfProgram = regexp.MustCompile(`(?:^|/)(?:curl|wandb|sshpass|(?:mysql|mariadb)[a-z_-]*)$`)

// reserved are the environment variables that the stages, their images or shells set themselves, or that shells ignore.
var reserved = strings.Fields("BASE_REGISTRY_PASSWORD BASE_REGISTRY_USER BASHOPTS BASH_ENV CHILD CI EUID HOME IFS IMAGE LD_PRELOAD PATH PPID PWD PYTHONHOME PYTHONPATH REGISTRY_PASSWORD REGISTRY_USER REQUEST RUN RUN_ID SERVICE SHELLOPTS SKIPPED UID VERSION WORK")

// Reserved reports whether the pipeline uses an environment variable itself, so that a file must not set it.
func Reserved(name string) bool {
	return slices.Contains(reserved, name) || strings.HasPrefix(name, "REWARDWATCH_") || strings.HasPrefix(name, "GITHUB_") ||
		strings.HasPrefix(name, "CI_") || strings.HasPrefix(name, "RUNNER_")
}
