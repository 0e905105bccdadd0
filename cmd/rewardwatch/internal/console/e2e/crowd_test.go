//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

const (
	crowd = 1000
	// The limits for the page of the crowd. They are the same for any number of policies.
	crowdPatience = 5 * time.Second
	crowdElements = 4_000
)

func member(i int) string { return fmt.Sprintf("agent-%04d", i) }

// crowded returns a service with a thousand policies, ten of which drift.
func crowded() *world {
	w := newWorld(nil)
	for i := range crowd {
		n, state := usual(member(i)), finding.OK
		if i%100 == 31 {
			state = finding.Drift
			w.incidents = append(w.incidents, incident(n, fmt.Sprintf("incident-%04d", i)))
		}
		w.watch(n, state, int64(1000+i))
	}
	return w
}

const policyLinks = `[...new Set([...document.querySelectorAll('main a[href*="policies/"]')].map(a => decodeURIComponent(a.pathname.split("/").pop())))]`

// With a thousand policies, the first page is as large as with a hundred: those that drift come first, a filter finds
// any of them with and without JavaScript, and paging shows all.
func TestE2EThousandPolicies(t *testing.T) {
	address, b := serveConsole(t, crowded()), startBrowser(t)
	t.Run("first page", func(t *testing.T) {
		p := b.open(t, desktop)
		p.visit(t, address)
		took := time.Duration(eval[float64](t, p, `performance.getEntriesByType("navigation")[0].duration`) * float64(time.Millisecond))
		elements := eval[int](t, p, `document.querySelectorAll("*").length`)
		t.Logf("%s, %d elements", took.Round(time.Millisecond), elements)
		if took > crowdPatience || elements > crowdElements {
			t.Errorf("takes %s for %d elements", took, elements)
		}
		if rows := eval[int](t, p, `document.querySelectorAll("table.fleet tbody tr").length`); rows != 100 {
			t.Errorf("the first page has %d rows", rows)
		}
		if first := eval[[]string](t, p, policyLinks); len(first) < 10 || !slices.Equal(first[:2], []string{member(31), member(131)}) {
			t.Errorf("first come %q", first[:min(10, len(first))])
		}
		p.clean(t)
	})
	t.Run("filter", func(t *testing.T) {
		p := b.open(t, desktop)
		p.visit(t, address)
		p.do(t, "type into the filter", chromedp.SendKeys(chromedp.JSPath(`document.querySelector("main input[type=search]")`), member(731)))
		p.until(t, fmt.Sprintf(`JSON.stringify(%s) === %s`, policyLinks, quoted(`["`+member(731)+`"]`)))
		p.clean(t)
		all(t, p.inaccessible(t))
	})
	t.Run("filter without JavaScript", func(t *testing.T) {
		p := b.open(t, plain)
		p.visit(t, address)
		p.do(t, "type into the filter", chromedp.SendKeys(chromedp.JSPath(`document.querySelector("main input[type=search]")`), member(731)))
		p.follow(t, `document.querySelector("main input[type=search]").form.querySelector("button")`)
		if found := eval[[]string](t, p, policyLinks); !slices.Equal(found, []string{member(731)}) {
			t.Errorf("finds %q", found)
		}
		p.clean(t)
	})
	t.Run("page after page", func(t *testing.T) {
		p := b.open(t, plain)
		p.visit(t, address)
		const next = `[...document.querySelectorAll("main a")].find(a => /^(next|more|older)/i.test(a.innerText.trim()))`
		found := map[string]bool{}
		for range crowd {
			for _, name := range eval[[]string](t, p, policyLinks) {
				found[name] = true
			}
			if !p.has(t, next) {
				break
			}
			p.follow(t, next)
		}
		if len(found) != crowd {
			t.Errorf("%d of %d are found", len(found), crowd)
		}
	})
}
