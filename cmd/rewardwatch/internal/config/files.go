package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/webconfig"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Warnings returns possible problems in a valid configuration file: files that it names but that cannot be used on this
// machine, triggers whose orders are refused, and secrets that are sent without encryption.
func Warnings(path string) ([]yamlfile.Problem, error) {
	missing, err := MissingFiles(path)
	if err != nil {
		return nil, err
	}
	_, err = loadConfig(path, func(c *Config, report func(path, msg string)) []yamlfile.Problem {
		c.checkWithRecipes(func(string, string) {}) // reads the recipes
		c.refusedOrders(func(path, msg string) { report("retrain."+path, msg) })
		c.clearText(report)
		return nil
	})
	if bad, ok := errors.AsType[*yamlfile.Error](err); ok {
		return append(missing, bad.Problems...), nil
	}
	return missing, err
}

// refusedOrders reports every trigger whose recipe is only for policies that learn continuously but which includes a
// policy that does not.
func (c *Config) refusedOrders(report func(path, msg string)) {
	for i, t := range c.Retrain.Triggers {
		how := c.Recipes[t.Recipe]
		if how == nil || how.Kind == recipe.Retrain {
			continue
		}
		globs := t.Policies
		if len(globs) == 0 {
			globs = []string{"*"}
		}
		for _, glob := range globs {
			if match, frozen := c.frozen(glob); frozen {
				report(fmt.Sprintf("triggers[%d].recipe", i), fmt.Sprintf("recipe %q requests %s, which is not allowed for policies that match %q: it requires learning: continuous", t.Recipe, how.Kind, match))
				break
			}
		}
	}
}

// frozen returns the first entry that applies to policies that match a glob and that does not let them learn
// continuously.
func (c *Config) frozen(glob string) (match string, found bool) {
	for i := range c.Policies {
		p := &c.Policies[i]
		whole := signals.Match(p.Match, glob) // no later entry applies
		if (whole || signals.Match(glob, p.Match)) && p.Learning != watch.LearningContinuous {
			return p.Match, true
		}
		if whole {
			break
		}
	}
	return "", false
}

// clearText reports every secret that crosses a network without encryption.
func (c *Config) clearText(report func(path, msg string)) {
	const why = "is sent without encryption: use https"
	am := &c.Alerts.Alertmanager
	for i, to := range am.URLs {
		if (am.TokenFile != "" || am.Username != "") && readable(to) {
			report(fmt.Sprintf("alerts.alertmanager.urls[%d]", i), "the token or password "+why)
		}
	}
	for i, t := range c.Retrain.Targets {
		if t.ShowsSecret() && readable(t.Address()) {
			report(fmt.Sprintf("retrain.targets[%d]", i), "the token or password "+why)
		}
	}
	k := &c.Ingest.Kafka
	shown := map[string]string{ingest.SASLPlain: "password", ingest.SASLOAuthBearer: "token"}[k.SASL.Mechanism]
	if shown != "" && !k.TLS.Enabled && slices.ContainsFunc(k.Brokers, func(b string) bool { return readable("http://" + b) }) {
		report("ingest.kafka.sasl.mechanism", k.SASL.Mechanism+" sends the "+shown+" without encryption: set tls.enabled")
	}
}

// readable reports whether others on the network can read data that is sent to an address.
func readable(to string) bool {
	at, err := url.Parse(to)
	if err != nil || at.Scheme != "http" || at.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(at.Hostname())
	return err != nil || !ip.IsLoopback()
}

// MissingFiles returns the keys of a valid configuration file that name a file which cannot be used on this machine,
// such as http.token_file. The service may run on another machine, so these are not errors.
func MissingFiles(path string) ([]yamlfile.Problem, error) {
	_, err := loadConfig(path, func(c *Config, report func(path, msg string)) []yamlfile.Problem {
		written := map[string]bool{}
		for _, s := range c.Secrets {
			written[filepath.Clean(s.File)] = true
		}
		missingFiles("", reflect.ValueOf(c).Elem(), written, report)
		return nil
	})
	if bad, ok := errors.AsType[*yamlfile.Error](err); ok {
		return bad.Problems, nil
	}
	return nil, err
}

// missingFiles reports each key whose name ends with _file and whose file cannot be used, except for files that the
// service writes when it starts.
func missingFiles(path string, v reflect.Value, written map[string]bool, report func(path, msg string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			missingFiles(path, v.Elem(), written, report)
		}
	case reflect.Slice:
		for i := range v.Len() {
			missingFiles(fmt.Sprintf("%s[%d]", path, i), v.Index(i), written, report)
		}
	case reflect.Struct:
		for _, f := range yamlfile.Fields(v) {
			at := yamlfile.Join(path, f.Key)
			if strings.HasSuffix(f.Key, "_file") && f.Value.Kind() == reflect.String {
				if err := usable(at, f.Value.String()); err != nil && !written[filepath.Clean(f.Value.String())] {
					report(at, err.Error()+whereFrom(f.Value.String(), err))
				}
				continue
			}
			missingFiles(at, f.Value, written, report)
		}
	}
}

// whereFrom returns a text with the directory that a relative path starts from, if the file does not exist, and ""
// otherwise.
func whereFrom(file string, err error) string {
	if filepath.IsAbs(file) || !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return "; relative paths start in the working directory, not next to this file"
}

// usable returns the reason why the file of a key cannot be used, or nil. Files with secrets must not be accessible to
// others, and tokens of the service must be long enough.
func usable(path, file string) error {
	key := path[strings.LastIndex(path, ".")+1:]
	switch {
	case file == "":
		return nil
	case slices.Contains([]string{"ca_file", "cert_file", "krb5_conf_file"}, key): // others may read these
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		return f.Close()
	case key == "web_config_file":
		return webconfig.Check(file)
	case strings.HasPrefix(path, "http.") && strings.HasSuffix(key, "token_file"):
		return access.Holders{{File: file}}.Check()
	}
	_, err := ingest.ReadSecretFile(file)
	return err
}
