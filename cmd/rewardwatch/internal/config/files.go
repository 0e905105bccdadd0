package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/webconfig"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// MissingFiles returns the keys of a valid configuration file that name a file which cannot be read on this machine,
// such as http.token_file. The service may well run on another one, so these are no errors.
func MissingFiles(path string) ([]yamlfile.Problem, error) {
	_, err := loadConfig(path, func(c *Config, report func(path, msg string)) []yamlfile.Problem {
		missingFiles("", reflect.ValueOf(c).Elem(), report)
		return nil
	})
	if bad, ok := errors.AsType[*yamlfile.Error](err); ok {
		return bad.Problems, nil
	}
	return nil, err
}

// missingFiles reports each key whose name ends with _file and whose file cannot be read.
func missingFiles(path string, v reflect.Value, report func(path, msg string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			missingFiles(path, v.Elem(), report)
		}
	case reflect.Slice:
		for i := range v.Len() {
			missingFiles(fmt.Sprintf("%s[%d]", path, i), v.Index(i), report)
		}
	case reflect.Struct:
		for _, f := range yamlfile.Fields(v) {
			at := yamlfile.Join(path, f.Key)
			if strings.HasSuffix(f.Key, "_file") && f.Value.Kind() == reflect.String {
				if err := readable(f.Key, f.Value.String()); err != nil {
					report(at, err.Error())
				}
				continue
			}
			missingFiles(at, f.Value, report)
		}
	}
}

// readable returns why the file of a key cannot be used. Files with secrets must be closed to others.
func readable(key, file string) error {
	switch {
	case file == "":
		return nil
	case key == "ca_file" || key == "cert_file":
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		return f.Close()
	case key == "web_config_file":
		return webconfig.Check(file)
	}
	_, err := ingest.ReadSecretFile(file)
	return err
}
