// Package apiurl checks the URLs of the services that start a retraining: whether the path of the API belongs to a URL
// depends on the service.
package apiurl

import (
	"net/url"
	"regexp"
	"strings"
)

// ofAPI matches the end of a URL with the path of an API, which the requests add.
var ofAPI = regexp.MustCompile(`/api(/v[0-9]+)?$`)

// Appended returns what is wrong with the URL of a service to which the path of its API is added, such as GitLab and
// Airflow; "" for nothing.
func Appended(text string) string {
	if end := ofAPI.FindString(strings.TrimRight(text, "/")); end != "" {
		return "must not end with " + end + ", which is added automatically"
	}
	return ""
}

// ofPages matches the usual hosts of a GitHub Enterprise Server, which has its API below /api/v3.
var ofPages = regexp.MustCompile(`^(?:ghes?|github|github-enterprise)\.[^.]+\..+$`)

// GitHub returns what is wrong with the URL of the API of GitHub, "" for nothing: github.com and
// ghe.com have their pages and their API at different addresses. Any other host may have the API at its
// root, unless its name is a usual one of a GitHub Enterprise Server.
func GitHub(text string) string {
	u, err := url.Parse(text)
	if err != nil || strings.Trim(u.Path, "/") != "" {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	switch {
	case host == "github.com" || host == "www.github.com":
		return "must be https://api.github.com, which is the default: omit it"
	case u.Scheme == "https" && ofPages.MatchString(host) && !strings.HasSuffix(host, ".ghe.com"):
		return "must be the URL of the API, https://" + u.Host + "/api/v3"
	case strings.HasSuffix(host, ".ghe.com") && !strings.HasPrefix(host, "api."):
		return "must be the URL of the API, https://api." + u.Host
	}
	return ""
}

// Repository returns what is wrong with the name of a repository, "" for nothing.
func Repository(name string) string {
	if strings.HasSuffix(name, ".git") {
		return "must be without .git, which is only part of the clone URL"
	}
	return ""
}
