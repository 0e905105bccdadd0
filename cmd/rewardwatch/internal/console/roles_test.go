package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
)

// roleRig returns a console for which bob has a token with a role.
func roleRig(t *testing.T, role access.Role) *rig {
	t.Helper()
	r := newRig(t)
	r.console.access.Tokens = func(context.Context) ([]access.Token, error) {
		return []access.Token{{Holder: access.Holder{Name: "bob", Role: role}, Text: r.token}}, nil
	}
	r.logIn()
	return r
}

func TestPagesOfferWhatTheRolePermits(t *testing.T) {
	const mute, approve, accept = `value="mute 1h"`, `value="approve rr_waits"`, `value="accept"`
	for role, offered := range map[access.Role]string{access.Viewer: "", access.Operator: mute, access.Approver: mute + approve + accept} {
		r := roleRig(t, role)
		page := r.send(http.MethodGet, somePage, nil).Body.String()
		for _, button := range []string{mute, approve, accept} {
			if strings.Contains(page, button) != strings.Contains(offered, button) {
				t.Errorf("%s: whether there is %s: %v", role, button, strings.Contains(page, button))
			}
		}
		if named := strings.Contains(page, `value="bob" required readonly`); named != (role != access.Viewer) {
			t.Errorf("%s: the form has the name of the token: %v", role, named)
		}
		if refused := strings.Contains(page, "Your role does not permit this"); refused != (role == access.Viewer) {
			t.Errorf("%s is refused: %v", role, refused)
		}
		request := r.send(http.MethodGet, "/retrain/rr_waits", nil).Body.String()
		if strings.Contains(request, `value="approve"`) != (role == access.Approver) {
			t.Errorf("%s may approve on the page of the request: %v", role, role != access.Approver)
		}
	}
}

func TestFormsNeedTheRole(t *testing.T) {
	for _, tt := range []struct {
		path, button string
		least        access.Role
	}{
		{somePage, "comment", access.Operator},
		{somePage, "mute 1h", access.Operator},
		{somePage, "accept", access.Approver},
		{somePage, "approve rr_waits", access.Approver},
		{"/retrain/rr_waits", "approve", access.Approver},
		{"/retrain/rr_waits", "reject", access.Approver},
	} {
		for _, role := range []access.Role{access.Viewer, access.Operator, access.Approver, access.Admin} {
			r := roleRig(t, role)
			form := order(tt.button)
			form.Set("seen", "1")
			permitted := role == access.Admin || role == access.Approver || role == tt.least
			w := r.send(http.MethodPost, tt.path, form)
			if want := map[bool]int{true: http.StatusSeeOther, false: http.StatusForbidden}[permitted]; w.Code != want {
				t.Errorf("%s on %s by %s: %d", tt.button, tt.path, role, w.Code)
			}
			if len(r.orders.asked) > 0 && (!permitted || r.orders.asked[0].By != "bob") {
				t.Errorf("%s by %s: %+v", tt.button, role, r.orders.asked)
			}
		}
	}
}

func TestLoginPageKnowsTheNameOfAToken(t *testing.T) {
	r := roleRig(t, access.Operator)
	r.send(http.MethodPost, "/login", url.Values{"token": {r.token}, "name": {"mallory"}})
	if page := r.send(http.MethodGet, "/login", nil).Body.String(); !strings.Contains(page, "<bdi>bob</bdi>") || strings.Contains(page, "mallory") {
		t.Errorf("the page says\n%s", page)
	}
}
