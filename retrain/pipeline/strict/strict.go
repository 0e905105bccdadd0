// Package strict checks the values of a file. It checks how they are written, such as an explicit 0 that a default
// would replace, which is lost once they are parsed. It also checks what they mean, such as whether the label of a
// runner is that of a Linux machine.
package strict

import (
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// needsElements matches lists that must have elements. For other lists, such as requirements, an empty list means none.
var needsElements = regexp.MustCompile(`\.(command|stop|runner|secrets)$`)

// Empty reports zeros, empty strings and empty lists in a file that a default replaces, or that leave a string or a
// command without content. given and resolved are pointers to the same struct before and after the defaults are set.
// The first of the files that sets a value wins. An empty value without a default is allowed if a later file sets it
// too, because it then removes the ancestor's value.
func Empty(files []*yamlfile.Reader, given, resolved any) []yamlfile.Problem {
	return empty(files, "", reflect.ValueOf(given).Elem(), reflect.ValueOf(resolved).Elem())
}

func empty(files []*yamlfile.Reader, path string, given, resolved reflect.Value) []yamlfile.Problem {
	if _, tree := given.Interface().(yamlfile.Value); tree {
		return nil
	}
	var out []yamlfile.Problem
	switch {
	case given.Kind() == reflect.Struct:
		after := yamlfile.Fields(resolved)
		for i, f := range yamlfile.Fields(given) {
			out = append(out, empty(files, yamlfile.Join(path, f.Key), f.Value, after[i].Value)...)
		}
	case given.Kind() == reflect.Slice && given.Len() > 0: // the elements come from one file, the first that sets the list
		i := slices.IndexFunc(files, func(r *yamlfile.Reader) bool { return r.Set(path) })
		for j := 0; i >= 0 && j < given.Len(); j++ {
			out = append(out, empty(files[i:i+1], fmt.Sprintf("%s[%d]", path, j), given.Index(j), resolved.Index(j))...)
		}
	case given.IsZero() || given.Kind() == reflect.Slice:
		return one(files, path, given, resolved)
	}
	return out
}

// one reports a single empty value, if it is a problem.
func one(files []*yamlfile.Reader, path string, given, resolved reflect.Value) []yamlfile.Problem {
	var sets []*yamlfile.Reader
	for _, r := range files {
		if Removes(r, path) {
			break
		}
		if r.Set(path) {
			sets = append(sets, r)
		}
	}
	if len(sets) == 0 {
		return nil
	}
	message := "must not be empty; omit the key"
	if strings.HasSuffix(path, "]") {
		message = "must not be empty"
	}
	switch hasDefault := !resolved.IsZero() && (resolved.Kind() != reflect.Slice || resolved.Len() > 0); {
	case hasDefault && given.CanConvert(reflect.TypeFor[float64]()):
		message = fmt.Sprintf("must not be 0; omit the key for the default, %v", resolved)
	case hasDefault:
		message = fmt.Sprintf("must not be empty; omit the key for the default, %v", resolved)
	case len(sets) > 1, given.Kind() != reflect.String && !needsElements.MatchString(path):
		return nil
	}
	return []yamlfile.Problem{{Place: sets[0].Place(path), Path: path, Message: message}}
}

// IsService reports whether a text is an http or https URL with a host, a valid port if it has one, and no user, query
// or fragment, so that a path can be appended.
func IsService(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsAny(text, "?#") {
		return false
	}
	return u.Port() == "" || IsPort(u.Port())
}

// IsLoopback reports whether a URL refers to the machine that calls it, as 0.0.0.0 does too.
func IsLoopback(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && (address.Unmap().IsLoopback() || address.IsUnspecified())
}

// IsPort reports whether a text is a valid port number.
func IsPort(text string) bool {
	port, err := strconv.Atoi(text)
	return err == nil && port > 0 && port <= 65535
}
