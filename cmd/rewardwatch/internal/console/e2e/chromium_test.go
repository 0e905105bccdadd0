//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a step in the browser may take. It is generous, since the tests share two cores with real
// servers.
const patience = 3 * time.Minute

// rebound is a name that resolves to this machine: that of another site whose owner has redirected it, or the service's
// own.
const rebound = "rebound.example"

// browser is a headless Chromium with an empty profile. In it, no name except rebound resolves.
type browser struct {
	ctx context.Context
}

// startBrowser starts a Chromium that ends with the test. It communicates with the test over a pipe and does not listen
// anywhere.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	var said bytes.Buffer
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium-headless-shell"),
		chromedp.CombinedOutput(&said),
		chromedp.Flag("disable-gpu", true), // without a GPU, Chromium would emulate it, in twice the time
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP "+rebound+" 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)...)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		closeTab()
		end()
		if t.Failed() {
			t.Logf("Chromium says:\n%s", &said)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return &browser{ctx}
}

// look is how a page is viewed.
type look struct {
	name        string
	width       int64 // in CSS pixels
	dark, plain bool  // plain is without JavaScript
}

var (
	desktop = look{name: "light", width: 1280}
	night   = look{name: "dark", width: 1280, dark: true}
	phone   = look{name: "phone", width: 390}
	plain   = look{name: "without JavaScript", width: 1280, plain: true}
)

// tab is a tab with its own cookies. It records what pages must not do.
type tab struct {
	ctx context.Context
	look
	dialogs sync.WaitGroup // of those that are being closed

	mu       sync.Mutex
	site     string // scheme, host and port that pages may request
	faults   []string
	inFlight map[network.RequestID]cdp.LoaderID // with the requesting document
	expected []string                           // parts of faults that the test expects
}

// open opens a tab that closes with the test.
func (b *browser) open(t *testing.T, how look) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &tab{ctx: ctx, look: how, inFlight: map[network.RequestID]cdp.LoaderID{}}
	t.Cleanup(func() {
		closeTab()
		p.dialogs.Wait()
	})
	if err := chromedp.Listen(ctx, p.note); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	p.do(t, "open a tab",
		command(audits.Enable, cdp.Empty{}),
		command(runtime.AddBinding, runtime.AddBindingParams{Name: sentinel}),
		command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: how.width, Height: 844, DeviceScaleFactor: 1, Mobile: how.width < 500,
		}),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: how.plain}),
	)
	p.prefer(t, how.dark)
	return p
}

// prefer displays pages in dark or light colors, including the current one.
func (p *tab) prefer(t *testing.T, dark bool) {
	t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do(t, "prefer "+scheme, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}))
}

// sentinel is a function of every page that none of our code calls: if a name calls it, the name was executed.
const sentinel = "hurt"

// note checks an event of the tab.
func (p *tab) note(event any) {
	switch e := event.(type) {
	case *runtime.EventBindingCalled:
		p.fault("a text was run: " + e.Payload)
	case *runtime.EventExceptionThrown:
		p.fault("exception: " + (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		p.fault(fmt.Sprintf("console.%s: %s", e.Type, spoken(e.Args)))
	case *log.EventEntryAdded:
		p.fault(fmt.Sprintf("%s: %s: %s (%s)", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *audits.EventIssueAdded:
		details, _ := json.Marshal(e.Issue.Details)
		p.fault(fmt.Sprintf("%s: %s", e.Issue.Code, details))
	case *page.EventJavascriptDialogOpening:
		p.fault("dialog: " + e.Message)
		// Everything stops until the dialog is closed, but note must not wait.
		p.dialogs.Go(func() {
			_ = chromedp.Do(p.ctx, command(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}))
		})
	case *page.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			p.arrives(e.Frame.LoaderID)
		}
	case *network.EventRequestWillBeSent:
		p.asks(e)
	case *network.EventLoadingFinished:
		p.answered(e.RequestID)
	case *network.EventLoadingFailed:
		p.answered(e.RequestID)
	}
}

func spoken(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		words = append(words, string(a.Value)+a.Description)
	}
	return strings.Join(words, " ")
}

func (p *tab) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}

func (p *tab) asks(e *network.EventRequestWillBeSent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight[e.RequestID] = e.LoaderID
	if site := siteOf(e.Request.URL); site != p.site {
		p.faults = append(p.faults, fmt.Sprintf("a page of %s asks %s", p.site, e.Request.URL))
	}
}

// arrives forgets the requests of the previous document: Chromium may not report that they are no longer answered.
func (p *tab) arrives(at cdp.LoaderID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.inFlight, func(_ network.RequestID, by cdp.LoaderID) bool { return by != at })
}

func (p *tab) answered(id network.RequestID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inFlight, id)
}

func (p *tab) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.inFlight)
}

func siteOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}

// expect announces something that pages must not do elsewhere: parts of the fault's text.
func (p *tab) expect(parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, parts...)
}

// clean fails the test with the faults of pages since it was last called.
func (p *tab) clean(t *testing.T) {
	t.Helper()
	for _, fault := range p.found(t) {
		t.Errorf("%s: %s", p.address(t), fault)
	}
}

// found returns the faults of pages since it was last called.
func (p *tab) found(t *testing.T) []string {
	t.Helper()
	p.settle(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := slices.DeleteFunc(p.faults, func(fault string) bool {
		return slices.ContainsFunc(p.expected, func(part string) bool { return strings.Contains(fault, part) })
	})
	p.faults = nil
	return faults
}

// settle waits until all requests are answered and the page is drawn.
func (p *tab) settle(t *testing.T) {
	t.Helper()
	drawn := `new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))`
	if p.plain {
		drawn = `true` // callbacks are not called
	}
	for deadline := time.Now().Add(patience); ; {
		eval[bool](t, p, drawn)
		if p.waiting() == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests are not answered", p.waiting())
		}
	}
}

func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, c, params)
		return chromedp.Void{}, err
	}
}

// do fails the test if a step fails or takes too long.
func (p *tab) do(t *testing.T, what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// visit goes to an address and returns the status of the response.
func (p *tab) visit(t *testing.T, address string) int {
	t.Helper()
	p.mu.Lock()
	p.site = siteOf(address)
	p.mu.Unlock()
	return p.leads(t, chromedp.Navigate(address))
}

// follow clicks on the result of a JavaScript expression and waits for the page that it leads to.
func (p *tab) follow(t *testing.T, element string) int {
	t.Helper()
	if !p.has(t, element) {
		t.Fatalf("%s has no %s:\n%s", p.address(t), element, p.shown(t))
	}
	return p.leads(t, chromedp.Click(chromedp.JSPath(element)))
}

// enter is like follow, with the keyboard.
func (p *tab) enter(t *testing.T, element string) int {
	t.Helper()
	return p.leads(t, chromedp.Steps(chromedp.Focus(chromedp.JSPath(element)), chromedp.KeyEvent(kb.Enter)))
}

func (p *tab) leads(t *testing.T, step chromedp.Action[chromedp.Void]) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	answer, err := chromedp.RunResponse(ctx, step)
	if err != nil {
		t.Fatalf("no page follows on %s: %v", p.address(t), err)
	}
	if answer == nil { // the page loaded without a response that Chromium reported, for example within the same document
		t.Fatalf("no response for %s:\n%s", p.address(t), p.shown(t))
	}
	return int(answer.Status)
}

func (p *tab) address(t *testing.T) string {
	t.Helper()
	return eval[string](t, p, `location.href`)
}

// press presses keys, one after the other.
func (p *tab) press(t *testing.T, keys string) {
	t.Helper()
	p.do(t, "press a key", chromedp.KeyEvent(keys))
}

// eval returns the value of a JavaScript expression in the page, and waits for it if it is a promise.
func eval[T any](t *testing.T, p *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("evaluate %.200s: %v", expression, err)
	}
	return value
}

// fill types into the field whose label begins with the text.
func (p *tab) fill(t *testing.T, label, text string) {
	t.Helper()
	field := `[...document.querySelectorAll("label")].find(l => l.innerText.trim().startsWith(` + quoted(label) + `)).control`
	p.do(t, "fill "+label, chromedp.SendKeys(chromedp.JSPath(field), text))
}

// until waits until a JavaScript expression is true.
func (p *tab) until(t *testing.T, condition string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(0))); err != nil {
		t.Fatalf("%s does not come about: %v\n%s", condition, err, p.shown(t))
	}
}

// has reports whether a JavaScript expression returns an element.
func (p *tab) has(t *testing.T, element string) bool {
	t.Helper()
	return eval[bool](t, p, `!!(`+element+`)`)
}

// named returns the link or button with a text, as JavaScript.
func named(text string) string {
	return `[...document.querySelectorAll("a, button")].find(e => e.innerText.trim() === ` + quoted(text) + `)`
}

// shown returns the visible text of the page, without its header and its footer.
func (p *tab) shown(t *testing.T) string {
	t.Helper()
	return eval[string](t, p, `document.querySelector("main").innerText`)
}

// quoted returns a text as a JavaScript literal.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(b)
}
