//go:build benchdetection

package detectors

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var runsFlag = flag.Int("runs", 2000, "runs of each cell of the tables of peers")

const (
	benchCut      = 20_000 // observations after the change at which a run is cut off
	benchBaseline = 200    // observations, for peers with a baseline
)

// column is a peer with its threshold and its measured false alarms.
type column struct {
	peer
	threshold float64
	before    int // observations before the change
	arl0      string
	arl0Is    string // median
}

// calibrated sets a peer's threshold for a mean of arl0 observations between false alarms.
func calibrated(p peer, arl0 float64, runs int) column {
	threshold, got := p.calibrateARL0(arl0, runs, 500)
	return column{
		peer: p, threshold: threshold, before: history,
		arl0: fmt.Sprintf("%.0f ± %.0f", got.mean, got.se), arl0Is: fmt.Sprintf("%.0f", got.median),
	}
}

// having is a peer with a given threshold. Its ARL0 is measured as observations per alarm in runs of at most most
// observations.
func having(p peer, name string, threshold float64, runs, most int) column {
	p.name = name
	lengths := make([]float64, runs)
	parallel(runs, func(i int) {
		run := p.records(normalLaw(0, 1), 510, uint64(i), threshold, most)
		lengths[i] = timeTo(run, threshold, most+1)
	})
	alarms, observations := 0., 0.
	for _, x := range lengths {
		observations += min(x, float64(most))
		if x <= float64(most) {
			alarms++
		}
	}
	c := column{peer: p, threshold: threshold, before: history, arl0Is: "-"}
	if c.arl0 = ratioOf(observations, alarms); alarms > float64(runs)/2 {
		c.arl0Is = fmt.Sprintf("%.0f", Quantiles(lengths, .5)[0])
	}
	return c
}

// ratioOf returns observations per alarm with the standard error of a Poisson process, or without alarms the lower
// 95 % limit.
func ratioOf(observations, alarms float64) string {
	if alarms == 0 {
		return fmt.Sprintf("> %.0f", observations/3)
	}
	return fmt.Sprintf("%.0f ± %.0f", observations/alarms, observations/alarms/math.Sqrt(alarms))
}

// String returns a delay with its standard error. If runs were cut off, it returns a lower bound and their number.
func (t times) String() string {
	if t.cut == 0 {
		return fmt.Sprintf("%.1f ± %.1f", t.mean, t.se)
	}
	return fmt.Sprintf("> %.1f (%d cut)", t.mean, t.cut)
}

func row(cells ...string) { fmt.Printf("| %s |\n", strings.Join(cells, " | ")) }

func head(title string, cells ...string) {
	fmt.Printf("\n### %s\n\n", title)
	row(cells...)
	row(slices.Repeat([]string{"---"}, len(cells))...)
}

// withUnchanged puts a row without a change before the others. It shows how soon false alarms occur at the place of
// the change; for detectors whose false alarms are not evenly spread, this is sooner or later than on average.
func withUnchanged(rows []change) []change {
	c := unchanged()
	c.name = "*none: ARL0 from the change on*"
	return append([]change{c}, rows...)
}

func named(columns []column) (names, arl0, medians []string) {
	for _, c := range columns {
		names, arl0, medians = append(names, c.name), append(arl0, c.arl0), append(medians, c.arl0Is)
	}
	return names, arl0, medians
}

// delayTable prints the delays of all columns and, if ratio is set, compares the first with the best of the other
// detectors.
func delayTable(title string, columns []column, rows []change, ratio bool) {
	names, arl0, medians := named(columns)
	more := func(cells []string, toBeat, best string) []string {
		if ratio {
			return append(cells, toBeat, best)
		}
		return cells
	}
	head(title, more(append([]string{"change"}, names...), "to beat", "ranks / best other")...)
	row(more(append([]string{"*none: ARL0*"}, arl0...), "", "")...)
	row(more(append([]string{"*none: median run*"}, medians...), "", "")...)
	for _, c := range rows {
		var cells []string
		var first float64
		best := math.Inf(1)
		for k, col := range columns {
			got := col.delays(&c, col.before, col.threshold, *runsFlag, benchCut)
			cells = append(cells, got.String())
			if k == 0 {
				first = got.mean
			} else if !strings.HasPrefix(col.name, columns[0].name) {
				best = min(best, got.mean)
			}
		}
		cells = append([]string{c.name}, cells...)
		if c.toBeat == 0 {
			row(more(cells, "", "")...)
		} else {
			row(more(cells, fmt.Sprint(c.toBeat), fmt.Sprintf("%.2f", first/best))...)
		}
	}
}

// allRanks are the rank branches with thresholds for an average promise: no allowance for the error of the baseline
// of benchBaseline values, and every branch armed.
func allRanks(name string, m int) peer { return rankPeer(name, m, 0, true) }

func TestBenchPeers(*testing.T) {
	const arl0 = 500
	var columns []column
	promising, _ := promisingRanks("ranks with allowance and arming rule", benchBaseline, arl0)
	for _, p := range []peer{
		allRanks("ranks", benchBaseline),
		cvmPeer(benchBaseline, 20), cvmPeer(benchBaseline, 50), kswinPeer(), pageHinkleyPeer(), adwinPeer(),
		promising,
		allRanks("ranks, baseline of 200 before the 300", benchBaseline),
		allRanks("ranks, baseline of 300 before the 300", 300),
	} {
		columns = append(columns, calibrated(p, arl0, *runsFlag))
	}
	columns[7].before, columns[8].before = benchBaseline+history, 300+history
	delayTable("Peers, every one with a mean of 500 observations between false alarms", columns, withUnchanged(streamChanges()), true)
	adwin := columns[5].threshold
	fmt.Printf("\nThresholds: KSWIN %.2f/30, Page-Hinkley %.2f, ADWIN delta %.3g, CvM (window 20) %.3f, (window 50) %.3f.\n",
		columns[3].threshold, columns[4].threshold, math.Exp(-adwin), columns[1].threshold, columns[2].threshold)
}

func TestBenchPeersUsual(*testing.T) {
	const budget = 500
	promised, threshold := promisingRanks("", benchBaseline, budget)
	columns := []column{
		having(promised, "ranks, a budget of 1 in 500", threshold, 500, 100_000),
		having(kswinPeer(), "KSWIN, alpha .005", peerKSWINUsual, *runsFlag, 50_000),
		having(pageHinkleyPeer(), "Page-Hinkley, 50", peerPageHinkleyUsual, *runsFlag, 50_000),
		having(adwinPeer(), "ADWIN, delta .002", -math.Log(.002), 200, 200_000),
		having(adwinPeer(), "ADWIN, delta .9", -math.Log(.9), *runsFlag, 50_000),
	}
	delayTable("Peers at their usual settings", columns, withUnchanged(streamChanges()), false)
}

// promisingRanks are the rank branches as a frozen baseline has them: those for which it has enough information,
// with the bootstrapped allowance for its error and thresholds for one false alarm in the given number of
// observations, which include the overlap of the branches. Distinct values have the same allowance, except for the
// randomness of the bootstrap.
func promisingRanks(name string, m int, budget float64) (p peer, threshold float64) {
	sample := continuous(m)
	t := NewRankTest(sample, NewRanks(sample), 1)
	rates := budget * float64(t.Carrying())
	t.Arm(1 / rates)
	samples := []BaselineSample{{Values: sample, Rank: t}}
	overlap := Overlap(samples, m, 1, runtime.GOMAXPROCS(0))
	found := Bootstrap(samples, m, 0, overlap, 1, runtime.GOMAXPROCS(0))
	return rankPeer(name, m, found.Allowance, false), math.Log(rates / overlap)
}

func TestBenchPeersSeldom(*testing.T) {
	const arl0 = 10_000
	var columns []column
	for _, p := range []peer{
		allRanks("ranks", benchBaseline), cvmPeer(benchBaseline, 20), cvmPeer(benchBaseline, 50), kswinPeer(), pageHinkleyPeer(), adwinPeer(),
	} {
		columns = append(columns, calibrated(p, arl0, *runsFlag/2))
	}
	rows := slices.DeleteFunc(streamChanges(), func(c change) bool { return c.name != "mean +0.5 sd" && c.name != "sd x2" })
	for i := range rows {
		rows[i].toBeat = []float64{70, 21.7}[i]
	}
	delayTable("Peers, every one with a mean of 10,000 observations between false alarms", columns, rows, true)
}

// The mean over baselines hides that each baseline has a different ARL0.
func TestBenchPeersOverBaselines(*testing.T) {
	const baselines, runs = 300, 40
	head("ARL0 of one baseline after the other",
		"peer", "mean", "10th percentile", "median", "90th percentile", "share of baselines at or above")
	show := func(p peer, threshold, arl0 float64) {
		got := p.overBaselines(threshold, int(50*arl0), baselines, runs)
		s := summarise(got)
		q := Quantiles(got, .1, .5, .9)
		above, _ := slices.BinarySearch(got, arl0)
		share := 1 - float64(above)/baselines
		row(fmt.Sprintf("%s at %.0f", p.name, arl0), fmt.Sprintf("%.0f ± %.0f", s.mean, s.se),
			fmt.Sprintf("%.0f", q[0]), fmt.Sprintf("%.0f", q[1]), fmt.Sprintf("%.0f", q[2]),
			fmt.Sprintf("%.2f ± %.2f", share, math.Sqrt(share*(1-share)/baselines)))
	}
	ranks, cvm := allRanks("ranks", benchBaseline), cvmPeer(benchBaseline, 20)
	show(ranks, calibrated(ranks, 500, *runsFlag).threshold, 500)
	show(cvm, calibrated(cvm, 500, *runsFlag).threshold, 500)
	show(ranks, calibrated(ranks, 10_000, *runsFlag/2).threshold, 10_000)
	for _, budget := range []float64{500, 10_000} {
		promising, threshold := promisingRanks("ranks with allowance and arming rule", benchBaseline, budget)
		show(promising, threshold, budget)
	}
}

// overBaselines returns the mean run length for each of several baselines.
func (p *peer) overBaselines(threshold float64, most, baselines, runs int) []float64 {
	out := make([]float64, baselines)
	parallel(baselines, func(i int) {
		sample := normal(rand.New(rand.NewPCG(530, uint64(i))), p.baseline)
		for k := range runs {
			rng := rand.New(rand.NewPCG(531, uint64(i*runs+k)))
			observe := p.start(slices.Clone(sample), rng)
			n := 1
			for observe(rng.NormFloat64()) < threshold && n < most {
				n++
			}
			out[i] += float64(n) / float64(runs)
		}
	})
	return out
}

// The original packages run in Python on files of the same streams, see peers/peers.py.
const (
	packagesPython  = "../.cache/venv-peers/bin/python"
	packagesStreams = "../.cache/peers"

	packageStreams     = 400     // per row; few, because the packages are slow
	packageSlowStreams = 60      // for the slowest packages
	packageCut         = 2000    // observations after the change
	packageHealthy     = 300_000 // observations of the stream without a change
	packageSlowHealthy = 30_000
)

// packagePlan is the input of peers.py.
type packagePlan struct {
	Rows             []packageRow `json:"rows"`
	Healthy          string       `json:"healthy"`
	SlowStreams      int          `json:"slow_streams"`
	SlowObservations int          `json:"slow_observations"`
	ADWINDelta       float64      `json:"adwin_delta"`
	PageHinkley      float64      `json:"page_hinkley"`
	CvM              packageCvM   `json:"cvm"`
}

type packageRow struct {
	Name string `json:"name"`
	File string `json:"file"`
}

type packageCvM struct {
	Baseline  int     `json:"baseline"`
	Window    int     `json:"window"`
	Threshold float64 `json:"threshold"`
}

// packageResult is a line of peers.py: the first alarms of a row's streams, or the alarms without a change.
type packageResult struct {
	Column       string `json:"column"`
	Row          string `json:"row"`
	First        []int  `json:"first"`
	Alarms       int    `json:"alarms"`
	Observations int    `json:"observations"`
}

func TestBenchPeersPackages(t *testing.T) {
	if _, err := os.Stat(packagesPython); err != nil {
		fmt.Print("\nriver, frouros and scipy are not installed, so their columns are missing; make peers installs them.\n")
		return
	}
	ours, cvm := calibrated(allRanks("ranks", benchBaseline), 500, *runsFlag), calibrated(cvmPeer(benchBaseline, 20), 500, *runsFlag)
	pageHinkley, adwin := calibrated(pageHinkleyPeer(), 500, *runsFlag), calibrated(adwinPeer(), 500, *runsFlag)
	plan := packagePlan{
		Healthy: "healthy.npy", SlowStreams: packageSlowStreams, SlowObservations: packageSlowHealthy,
		ADWINDelta: math.Exp(-adwin.threshold), PageHinkley: pageHinkley.threshold,
		CvM: packageCvM{benchBaseline, 20, cvm.threshold},
	}
	streams := writeStreams(t, &plan)
	results := runPackages(t)
	printPackages(results, ours, streams)

	adwinUsual, pageHinkleyAt50 := adwin, pageHinkley
	adwinUsual.threshold, pageHinkleyAt50.threshold = -math.Log(.002), peerPageHinkleyUsual
	fmt.Print("\nFirst alarms at the same observation in the packages and in the code of the other tables:\n\n")
	for _, c := range []struct {
		name string
		column
	}{
		{"river ADWIN, delta .002", adwinUsual},
		{"river Page-Hinkley, 50", pageHinkleyAt50},
		{"river ADWIN, calibrated", adwin},
		{"river Page-Hinkley, calibrated", pageHinkley},
		{"scipy CvM, calibrated", cvm},
	} {
		same, all := agreement(results, c.name, c.column, streams)
		fmt.Printf("* %s: %d of %d streams\n", c.name, same, all)
	}
}

// stream returns one row of a file, as the package's detectors receive it.
func stream(c *change, index uint64) []float64 {
	rng := rand.New(rand.NewPCG(c.seed, index))
	x := make([]float64, history+packageCut)
	for i := range x {
		if i < history {
			x[i] = c.before(rng)
		} else {
			x[i] = c.after(rng)
		}
	}
	return x
}

// writeStreams writes the streams of all rows and the plan, and returns the streams by row.
func writeStreams(t *testing.T, plan *packagePlan) map[string][][]float64 {
	t.Helper()
	must(t, os.MkdirAll(packagesStreams, 0o755))
	streams := map[string][][]float64{}
	for i, c := range streamChanges() {
		all := make([][]float64, packageStreams)
		for k := range all {
			all[k] = stream(&c, uint64(k))
		}
		file := fmt.Sprintf("row%d.npy", i)
		plan.Rows = append(plan.Rows, packageRow{c.name, file})
		writeArray(t, file, all)
		streams[c.name] = all
	}
	writeArray(t, plan.Healthy, [][]float64{normal(rand.New(rand.NewPCG(540, 0)), packageHealthy)})
	text, err := json.Marshal(plan)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(packagesStreams, "plan.json"), text, 0o644))
	return streams
}

// writeArray writes rows of one length as an array in NumPy's format, version 1.0; a single row becomes one
// dimension.
func writeArray(t *testing.T, name string, rows [][]float64) {
	t.Helper()
	shape := fmt.Sprintf("(%d, %d)", len(rows), len(rows[0]))
	if len(rows) == 1 {
		shape = fmt.Sprintf("(%d,)", len(rows[0]))
	}
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': %s, }", shape)
	const preamble, block = 10, 64
	header += strings.Repeat(" ", block-1-(preamble+len(header))%block) + "\n"
	f, err := os.Create(filepath.Join(packagesStreams, name))
	must(t, err)
	w := bufio.NewWriter(f)
	_, err = fmt.Fprintf(w, "\x93NUMPY\x01\x00%c%c%s", len(header)%256, len(header)/256, header)
	must(t, err)
	for _, r := range rows {
		must(t, binary.Write(w, binary.LittleEndian, r))
	}
	must(t, w.Flush())
	must(t, f.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func runPackages(t *testing.T) []packageResult {
	t.Helper()
	cmd := exec.Command(packagesPython, "peers/peers.py", packagesStreams)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must(t, err)
	var results []packageResult
	for line := range strings.Lines(string(out)) {
		var r packageResult
		must(t, json.Unmarshal([]byte(line), &r))
		results = append(results, r)
	}
	return results
}

// ofFirst summarizes first alarms, counted from 1 with 0 for none, as delays.
func ofFirst(first []int) times {
	var kept []float64
	discarded, cut := 0, 0
	for _, at := range first {
		switch {
		case at == 0:
			cut++
			kept = append(kept, packageCut)
		case at <= history:
			discarded++
		default:
			kept = append(kept, float64(at-history))
		}
	}
	out := summarise(kept)
	out.discarded, out.cut = discarded, cut
	return out
}

// firstAlarm returns the number of the first observation of a stream with an alarm, counted from 1, or 0 for none.
func (c *column) firstAlarm(x []float64, index uint64) int {
	observe := c.start(slices.Clone(x[:c.baseline]), rand.New(rand.NewPCG(index, 0)))
	for i, v := range x[c.baseline:] {
		if observe(v) >= c.threshold {
			return c.baseline + i + 1
		}
	}
	return 0
}

func (c *column) firstAlarms(streams [][]float64) []int {
	first := make([]int, len(streams))
	parallel(len(first), func(i int) { first[i] = c.firstAlarm(streams[i], uint64(i)) })
	return first
}

// printPackages prints one row per package, because their names are long.
func printPackages(results []packageResult, ours column, streams map[string][][]float64) {
	var names []string
	cells, arl0, given := map[string][]string{}, map[string]string{}, map[string]int{}
	for _, r := range results {
		if r.Row == "" {
			arl0[r.Column] = ratioOf(float64(r.Observations), float64(r.Alarms))
			names = append(names, r.Column)
			continue
		}
		cells[r.Column], given[r.Column] = append(cells[r.Column], ofFirst(r.First).String()), len(r.First)
	}
	header := []string{"detector", "streams", "ARL0"}
	own := []string{"ranks", fmt.Sprint(packageStreams), ours.arl0}
	for _, c := range streamChanges() {
		header = append(header, c.name)
		own = append(own, ofFirst(ours.firstAlarms(streams[c.name])).String())
	}
	head("The packages themselves, on the same streams", header...)
	row(own...)
	for _, name := range names {
		row(append([]string{name, fmt.Sprint(given[name]), arl0[name]}, cells[name]...)...)
	}
}

// agreement counts the streams in which a package and our own code raise the first alarm at the same observation.
func agreement(results []packageResult, name string, c column, streams map[string][][]float64) (same, all int) {
	for _, r := range results {
		if r.Column != name || r.Row == "" {
			continue
		}
		for i, at := range c.firstAlarms(streams[r.Row][:len(r.First)]) {
			all++
			if at == r.First[i] {
				same++
			}
		}
	}
	return same, all
}
