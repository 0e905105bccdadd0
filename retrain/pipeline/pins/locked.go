package pins

import (
	"encoding/json"
	"strings"
)

// OfPipfileLock returns the versions in a Pipfile.lock by normalized name, or nil if the file is invalid.
func OfPipfileLock(text string) map[string]string {
	var lock struct {
		Default map[string]struct {
			Version string `json:"version"`
		} `json:"default"`
	}
	if json.Unmarshal([]byte(text), &lock) != nil {
		return nil
	}
	out := map[string]string{}
	for name, x := range lock.Default {
		out[Normalized(name)] = strings.TrimPrefix(x.Version, "==")
	}
	return out
}

// OfReport returns the versions in a report of pip by normalized name, or nil if the report is invalid.
func OfReport(text string) map[string]string {
	var report struct {
		Install []struct {
			Metadata struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"metadata"`
		} `json:"install"`
	}
	if json.Unmarshal([]byte(text), &report) != nil {
		return nil
	}
	out := map[string]string{}
	for _, x := range report.Install {
		out[Normalized(x.Metadata.Name)] = x.Metadata.Version
	}
	return out
}
