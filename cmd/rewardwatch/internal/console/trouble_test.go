package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A page that cannot be written becomes an error in the style of the console, without any part of the page.
func TestAPageThatFailsSaysWhereTheReasonIs(t *testing.T) {
	w := httptest.NewRecorder()
	consoleOf(madeUpFleet(1, someTime), nil).show(w, httptest.NewRequest(http.MethodGet, "/incidents", nil), http.StatusOK, "fleet.html", "no data of a fleet")
	body := w.Body.String()
	if w.Code != http.StatusInternalServerError || strings.Count(body, "<html") != 1 || !strings.Contains(body, "See the service log for details") ||
		!strings.Contains(body, "Back to the fleet") {
		t.Errorf("%d %s", w.Code, body)
	}
}
