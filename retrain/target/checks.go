package target

import (
	"net/url"
	"strings"
)

// below returns a report function for the keys of a section.
func below(section string, report func(key, msg string)) func(key, msg string) {
	return func(key, msg string) { report(section+"."+key, msg) }
}

func checkToken(file string, report func(key, msg string)) {
	if file == "" {
		report("token_file", "must name a file with a token")
	}
}

func checkEndpoint(raw, tokenFile string, report func(key, msg string)) {
	if msg := checkURL(raw); msg != "" {
		report("url", msg)
	}
	checkToken(tokenFile, report)
}

// checkBase checks a URL to which a path is appended. ofAPI returns what else is wrong with one of the service.
func checkBase(raw string, optional bool, ofAPI func(string) string, report func(key, msg string)) {
	if raw == "" && optional {
		return
	}
	if msg := checkURL(raw); msg != "" {
		report("url", msg)
	} else if strings.ContainsAny(raw, "?#") {
		report("url", "must end with its path")
	} else if msg = ofAPI(raw); msg != "" {
		report("url", msg)
	}
}

func base(given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	return strings.TrimRight(given, "/")
}

// checkURL returns what is wrong with a URL. It never repeats the URL, which may contain a token.
func checkURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "must not be empty"
	case err != nil:
		return "must be a URL such as https://trainer.example/hook"
	case u.Scheme != "https" && u.Scheme != "http":
		return "must begin with https:// or http://"
	case u.Hostname() == "":
		return "must name a host"
	case u.User != nil:
		return "must not contain a user or password"
	}
	return ""
}
