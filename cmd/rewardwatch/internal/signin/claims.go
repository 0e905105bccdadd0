package signin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

// claims are a provider's statements about a person.
type claims map[string]any

// at returns the claim at a path, or nil if there is none. A claim whose name contains the dots takes precedence,
// because such names are URLs.
func (c claims) at(path string) any {
	if value, has := c[path]; has {
		return value
	}
	var in any = map[string]any(c)
	for name := range strings.SplitSeq(path, ".") {
		object, is := in.(map[string]any)
		if !is {
			return nil
		}
		in = object[name]
	}
	return in
}

// texts returns the texts of a claim that is a text or a list.
func (c claims) texts(path string) []string {
	switch value := c.at(path).(type) {
	case string:
		return []string{value}
	case []any:
		var out []string
		for _, v := range value {
			if text, is := v.(string); is {
				out = append(out, text)
			}
		}
		return out
	}
	return nil
}

// unverified reports whether the provider has not verified the e-mail address, so that people could enter the address
// of somebody else. Some providers do not say, because people cannot enter addresses there.
func (c claims) unverified() bool {
	verified, says := c["email_verified"]
	return c["email"] != nil && says && verified != true && verified != "true"
}

// byAddress reports whether the e-mail address determines the name or the role of a person.
func (p *Provider) byAddress() bool { return p.cfg.NameClaim == "email" || p.cfg.RolesClaim == "email" }

// person returns the identity of a person in the service, or ErrNoRole, ErrUnverified or ErrRefused.
func (p *Provider) person(c claims) (session.Person, error) {
	name, _ := c.at(p.cfg.NameClaim).(string)
	if err := words.CheckText(p.cfg.NameClaim, name, words.MaxBy); err != nil {
		return session.Person{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if name != words.Printable(strings.TrimSpace(name)) {
		return session.Person{}, fmt.Errorf("%w: %s %.300q has spaces around it or invisible characters", ErrRefused, p.cfg.NameClaim, name)
	}
	if p.byAddress() && c.unverified() {
		return session.Person{}, fmt.Errorf("%w: %.300q", ErrUnverified, c.at("email"))
	}
	who := session.Person{Name: name, Known: true}
	values := c.texts(p.cfg.RolesClaim)
	for _, m := range p.cfg.Roles {
		if slices.Contains(values, m.Value) && slices.Index(rising, m.Role) > slices.Index(rising, who.Role) {
			who.Role, who.Tenant = m.Role, m.Tenant
		}
	}
	if !who.Role.Permits(access.Read) {
		return who, fmt.Errorf("%w: %s", ErrNoRole, p.said(values))
	}
	return who, nil
}

// said describes the values of the roles claim, for the log.
func (p *Provider) said(values []string) string {
	if len(values) == 0 {
		return fmt.Sprintf("the provider sent no claim %q with roles", p.cfg.RolesClaim)
	}
	return fmt.Sprintf("none of the values of the claim %q is in http.oidc.roles: %.300s", p.cfg.RolesClaim, fmt.Sprintf("%q", values))
}
